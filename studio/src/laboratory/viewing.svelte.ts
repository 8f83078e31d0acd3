/** One run under one cursor, as Run, Tour and Embed show it: made by the worker, looked into wherever the cursor goes. */
import { Cursor } from "./cursor.svelte.ts";
import type { Look, Progress, ShownRun } from "./engine/answers.ts";
import type { EngineClient } from "./engine/client.ts";
import type { Words } from "./engine/recipe.ts";

interface Shown {
  /** What is to be shown; it is made anew when this changes. */
  readonly words: () => Words;
  readonly begins: (run: ShownRun, words: Words) => number;
  /** After the state at a step is known, unless another run is being made. */
  readonly onlook?: (step: number) => void;
}

export class Viewing {
  readonly cursor = new Cursor();
  run = $state.raw<ShownRun | null>(null);
  look = $state.raw<Look | null>(null);
  failure = $state("");
  /** How far the worker is with a run; empty while none is made. */
  making = $state("");
  readonly #engine: EngineClient;

  /** While a component is made, since it has effects. */
  constructor(engine: EngineClient, { words, begins, onlook }: Shown) {
    this.#engine = engine;
    this.cursor.isShown = () => this.look?.step === this.cursor.step || this.failure !== "";
    $effect(() => {
      const asked = words();
      this.failure = "";
      this.making = "Making the run …";
      const tell = ({ phase, events, states }: Progress) => {
        const count = events > 0 ? `${events.toLocaleString("en")} events` : `${states.toLocaleString("en")} states`;
        if (words() === asked) this.making = `Making the run: ${count} ${phase}`;
      };
      engine.run(asked, tell).then(
        (run) => {
          if (words() !== asked) return;
          this.making = "";
          this.look = null;
          this.run = run;
          this.cursor.begin(run.steps.length, begins(run, asked));
        },
        (error: unknown) => {
          if (words() !== asked) return;
          this.making = "";
          this.failure = (error as Error).message;
        },
      );
    });
    $effect(() => {
      const { step } = this.cursor;
      const { run } = this;
      if (run === null) return;
      engine.look(step).then(
        (look) => {
          if (run !== this.run || look.step !== this.cursor.step) return;
          this.look = look;
          if (!this.cursor.plays && this.making === "") onlook?.(step);
        },
        (error: unknown) => {
          this.failure = (error as Error).message;
        },
      );
    });
    $effect(() => () => this.cursor.pause());
  }

  /** Ends the making of a run. The one that was shown before goes with its worker. */
  stop(): void {
    if (this.making === "") return;
    this.run = null;
    this.#engine.stop();
  }
}
