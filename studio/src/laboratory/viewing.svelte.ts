/** One run under one cursor, as Run, Tour and Embed show it: made by the worker, looked into wherever the cursor goes. */
import { Cursor } from "./cursor.svelte.ts";
import type { Look, ShownRun } from "./engine/answers.ts";
import type { Asking } from "./engine/asking.ts";
import type { Words } from "./engine/recipe.ts";

interface Shown {
  /** What is to be shown; it is made anew when this changes. */
  readonly words: () => Words;
  readonly begins: (run: ShownRun, words: Words) => number;
  /** After the state at a step is known. */
  readonly onlook?: (step: number) => void;
}

export class Viewing {
  readonly cursor = new Cursor();
  run = $state.raw<ShownRun | null>(null);
  look = $state.raw<Look | null>(null);
  failure = $state("");

  /** While a component is made, since it has effects. */
  constructor(asking: Asking, { words, begins, onlook }: Shown) {
    $effect(() => {
      const asked = words();
      this.failure = "";
      asking.run(asked).then(
        (run) => {
          if (words() !== asked) return;
          this.look = null;
          this.run = run;
          this.cursor.begin(run.steps.length, begins(run, asked));
        },
        (error: unknown) => {
          if (words() === asked) this.failure = (error as Error).message;
        },
      );
    });
    $effect(() => {
      const { step } = this.cursor;
      const { run } = this;
      if (run === null) return;
      asking.look(step).then(
        (look) => {
          if (run !== this.run || look.step !== this.cursor.step) return;
          this.look = look;
          if (!this.cursor.plays) onlook?.(step);
        },
        (error: unknown) => {
          this.failure = (error as Error).message;
        },
      );
    });
    $effect(() => () => this.cursor.pause());
  }
}

/** Where the link says, else where it was broken, else at the opening. */
export function beginning({ properties, steps, forks }: ShownRun, { at }: Words): number {
  if (at !== undefined && /^-?\d+$/.test(at)) return Number(at);
  const fork = forks.at(-1);
  if (fork !== undefined) return steps.findIndex(({ entries }) => entries > fork.entries);
  const broken = properties.find(({ step }) => step !== null)?.step;
  // Before anything is done, all that begin at once have begun.
  const opening = steps.findIndex(({ lines }) => !lines.every((line) => /^(starts|is now )/.test(line)));
  return broken ?? opening - 1;
}
