/** How many faults it takes: what the button asks of the checker, and what came of it in words. */
import type { CheckShown } from "./engine/answers.ts";
import type { Words } from "./engine/recipe.ts";

const kinds = ["crashes", "recoveries", "losses", "duplications"] as const;

/** Of which faults, and how many at most, the form may say; otherwise crashes and losses. */
export function askingFewest(words: Words): Words {
  const hasFaults = kinds.some((kind) => Number(words[kind] ?? 0) > 0);
  const { strategy: _strategy, ...rest } = words;
  return { ...rest, ...(hasFaults ? {} : { crashes: "2", losses: "2" }), fewestFaults: "on" };
}

const counted = (count: number): string =>
  count === 0 ? "no fault at all" : count === 1 ? "one fault" : `${count} faults`;

export function faultsText({ breaking, harmless }: NonNullable<CheckShown["faults"]>): string {
  const proven =
    harmless < 0 ? "" : harmless === 0 ? "without faults nothing breaks" : `up to ${counted(harmless)} nothing breaks`;
  if (breaking === null) return proven === "" ? "No fault was tried to the end." : `${capital(proven)}.`;
  const takes = breaking === 0 ? "It breaks without any fault" : `${capital(counted(breaking))} can break it`;
  if (breaking === 0) return `${takes}.`;
  return harmless === breaking - 1 ? `${takes}, and no fewer: ${proven}.` : `${takes}; whether fewer do is left open.`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
