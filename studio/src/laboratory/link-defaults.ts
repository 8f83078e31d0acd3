/** Defaults for links that name only a scenario, or nothing at all. */
import type { Catalogue } from "./catalogue.ts";
import type { ShownRun } from "./engine/answers.ts";
import type { PageName, Words } from "./engine/recipe.ts";

/** Returns the algorithm and variant of a scenario. Returns no words if the scenario is not in the catalogue. */
export function algorithmOf(scenario: string | undefined, catalogue: Catalogue): Words {
  for (const { name, scenarios } of catalogue) {
    const found = scenarios.find(({ file }) => file === scenario);
    if (found !== undefined)
      return { protocol: name, ...(found.variant === undefined ? {} : { variant: found.variant }) };
  }
  return {};
}

/** Adds the scenario's protocol to the words. */
export function withProtocol(words: Words, catalogue: Catalogue): Words {
  const { protocol } = words.protocol === undefined ? algorithmOf(words.scenario, catalogue) : {};
  return protocol === undefined ? words : { ...words, protocol };
}

/** Returns why the words do not specify a run, or an empty string if they do. */
export function runProblem({ protocol = "", scenario }: Words, catalogue: Catalogue): string {
  if (protocol !== "" && !catalogue.some(({ name }) => name === protocol))
    return `No protocol is called “${protocol}”. The gallery lists the protocols.`;
  const isKnown =
    scenario === undefined || catalogue.some(({ scenarios }) => scenarios.some(({ file }) => file === scenario));
  return isKnown ? "" : `No scenario is called “${scenario}”. The gallery lists the scenarios.`;
}

/** Returns the words that a page uses if its link does not specify a run. */
export function presetOf(page: PageName): Words {
  if (page === "compare") return { protocol: "bully", with: "ring,chang-roberts", nodes: "6" };
  return page === "run" || page === "check" || page === "embed" ? { protocol: "bully" } : {};
}

/** Returns the words, completed with the page's default if they do not specify a run. They may still set the cursor. */
export function withPreset(page: PageName, words: Words): Words {
  const { protocol = "", scenario, recording, counterexample } = words;
  const namesRun = protocol !== "" || [scenario, recording, counterexample].some((each) => each !== undefined);
  const { protocol: _none, ...others } = words;
  return namesRun ? words : { ...presetOf(page), ...others };
}

/**
 * Returns the initial cursor. It is taken from the link if given there; otherwise it is the step of a violation or, if
 * there is none, the opening.
 */
export function beginning({ properties, steps, forks }: ShownRun, { at }: Words): number {
  if (at !== undefined && /^-?\d+$/.test(at)) return Number(at);
  const fork = forks.at(-1);
  if (fork !== undefined) {
    const next = steps.findIndex(({ entries }) => entries > fork.entries);
    return next === -1 ? steps.length - 1 : next; // No entries followed, or only folded ones.
  }
  const broken = properties.find(({ step }) => step !== null)?.step;
  // The opening comes before any action, after the initial nodes have started.
  const opening = steps.findIndex(({ lines }) => !lines.every((line) => /^(starts|is now )/.test(line)));
  // If all later entries are folded, use the last step. Nodes are up at that step, so acts are possible.
  return broken ?? (opening === -1 ? steps.length : opening) - 1;
}
