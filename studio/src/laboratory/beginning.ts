/** Where the cursor stands when a run is opened. */
import type { ShownRun } from "./engine/answers.ts";
import type { Words } from "./engine/recipe.ts";

/** Where the link says, else where it was broken, else at the opening. */
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
