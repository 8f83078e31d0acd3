/** A link may name a scenario alone, or nothing. Which algorithm a scenario is of stands in the catalogue. */
import type { Catalogue } from "./catalogue.ts";
import type { ShownRun } from "./engine/answers.ts";
import type { PageName, Words } from "./engine/recipe.ts";

/** The algorithm of a scenario, and the form of it that runs; empty for what is not in the catalogue. */
export function algorithmOf(scenario: string | undefined, catalogue: Catalogue): Words {
  for (const { name, scenarios } of catalogue) {
    const found = scenarios.find(({ file }) => file === scenario);
    if (found !== undefined)
      return { protocol: name, ...(found.variant === undefined ? {} : { variant: found.variant }) };
  }
  return {};
}

/** The same words with the protocol, where a scenario says it. */
export function withProtocol(words: Words, catalogue: Catalogue): Words {
  const { protocol } = words.protocol === undefined ? algorithmOf(words.scenario, catalogue) : {};
  return protocol === undefined ? words : { ...words, protocol };
}

/** Why the words name no run; empty if they name one. */
export function runProblem({ protocol = "", scenario }: Words, catalogue: Catalogue): string {
  if (protocol !== "" && !catalogue.some(({ name }) => name === protocol))
    return `No protocol is called “${protocol}”. The gallery lists the protocols.`;
  const isKnown =
    scenario === undefined || catalogue.some(({ scenarios }) => scenarios.some(({ file }) => file === scenario));
  return isKnown ? "" : `No scenario is called “${scenario}”. The gallery lists the scenarios.`;
}

/** What a page shows if its link names no run. */
export function presetOf(page: PageName): Words {
  if (page === "compare") return { protocol: "bully", with: "ring,chang-roberts", nodes: "6" };
  return page === "run" || page === "check" || page === "embed" ? { protocol: "bully" } : {};
}

/** The same words, with what the page shows of itself if they name no run: they may say where its cursor stands. */
export function withPreset(page: PageName, words: Words): Words {
  const { protocol = "", scenario, recording, counterexample } = words;
  const namesRun = protocol !== "" || [scenario, recording, counterexample].some((each) => each !== undefined);
  const { protocol: _none, ...others } = words;
  return namesRun ? words : { ...presetOf(page), ...others };
}

/** Where the cursor begins: where the link says, else where it was broken, else at the opening. */
export function beginning({ properties, steps, forks }: ShownRun, { at }: Words): number {
  if (at !== undefined && /^-?\d+$/.test(at)) return Number(at);
  const fork = forks.at(-1);
  if (fork !== undefined) {
    const next = steps.findIndex(({ entries }) => entries > fork.entries);
    return next === -1 ? steps.length - 1 : next; // Nothing followed, or only what is folded.
  }
  const broken = properties.find(({ step }) => step !== null)?.step;
  // Before anything is done, all that begin at once have begun.
  const opening = steps.findIndex(({ lines }) => !lines.every((line) => /^(starts|is now )/.test(line)));
  // Where nothing else is shown, as all that follows is folded, it is the last: something is up that can be acted on.
  return broken ?? (opening === -1 ? steps.length : opening) - 1;
}
