/** Defaults for links that name only a scenario, or nothing. The catalogue has the algorithm of each scenario. */
import type { Catalogue } from "./catalogue.ts";
import type { ShownRun } from "./engine/answers.ts";
import type { PageName, Words } from "./engine/recipe.ts";

/** The algorithm and variant of a scenario; empty if it is not in the catalogue. */
export function algorithmOf(scenario: string | undefined, catalogue: Catalogue): Words {
  for (const { name, scenarios } of catalogue) {
    const found = scenarios.find(({ file }) => file === scenario);
    if (found !== undefined)
      return { protocol: name, ...(found.variant === undefined ? {} : { variant: found.variant }) };
  }
  return {};
}

/** The same words with the protocol of their scenario. */
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

/** The words that a page uses if its link names no run. */
export function presetOf(page: PageName): Words {
  if (page === "compare") return { protocol: "bully", with: "ring,chang-roberts", nodes: "6" };
  return page === "run" || page === "check" || page === "embed" ? { protocol: "bully" } : {};
}

/** The words, completed with the page's default if they name no run. They may still set the cursor. */
export function withPreset(page: PageName, words: Words): Words {
  const { protocol = "", scenario, recording, counterexample } = words;
  const namesRun = protocol !== "" || [scenario, recording, counterexample].some((each) => each !== undefined);
  const { protocol: _none, ...others } = words;
  return namesRun ? words : { ...presetOf(page), ...others };
}

/** The initial cursor: the link's, otherwise the step of a violation, otherwise the opening. */
export function beginning({ properties, steps, forks }: ShownRun, { at }: Words): number {
  if (at !== undefined && /^-?\d+$/.test(at)) return Number(at);
  const fork = forks.at(-1);
  if (fork !== undefined) {
    const next = steps.findIndex(({ entries }) => entries > fork.entries);
    return next === -1 ? steps.length - 1 : next; // Nothing followed, or only folded entries.
  }
  const broken = properties.find(({ step }) => step !== null)?.step;
  // Before any action, after the initial nodes have started.
  const opening = steps.findIndex(({ lines }) => !lines.every((line) => /^(starts|is now )/.test(line)));
  // If all later entries are folded, use the last step: nodes are up and can be acted on.
  return broken ?? (opening === -1 ? steps.length : opening) - 1;
}
