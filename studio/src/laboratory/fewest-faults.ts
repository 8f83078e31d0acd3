/** Finds the fewest faults that break a property: the request to the checker, and a description of its result. */
import type { CheckShown } from "./engine/answers.ts";
import type { Words } from "./engine/recipe.ts";

const kinds = ["crashes", "recoveries", "losses", "duplications", "pauses"] as const;

/** Returns the words for a search. The form may limit the kinds and number of faults. Default: crashes and losses. */
export function askingFewest(words: Words): Words {
  const hasFaults = kinds.some((kind) => Number(words[kind] ?? 0) > 0);
  const { strategy: _strategy, ...rest } = words;
  return { ...rest, ...(hasFaults ? {} : { crashes: "2", losses: "2" }), fewestFaults: "on" };
}

const counted = (count: number): string =>
  count === 0 ? "no fault at all" : count === 1 ? "one fault" : `${count} faults`;

export function faultsText({ breaking, harmless }: NonNullable<CheckShown["faults"]>): string {
  const proven =
    harmless < 0
      ? ""
      : harmless === 0
        ? "without faults, nothing breaks"
        : `with up to ${counted(harmless)}, nothing breaks`;
  if (breaking === null) return proven === "" ? "No number of faults was explored completely." : `${capital(proven)}.`;
  const takes =
    breaking === 0
      ? "It breaks without any fault"
      : `${capital(counted(breaking))} ${breaking === 1 ? "is" : "are"} enough to break it`;
  if (breaking === 0) return `${takes}.`;
  return harmless === breaking - 1 ? `${takes}. ${capital(proven)}.` : `${takes}. Fewer may be enough, too.`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
