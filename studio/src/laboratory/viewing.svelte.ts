/**
 * One run with one cursor, for the pages Run, Tour and Embed. The worker computes the run and returns its state at the
 * cursor.
 */
import { Cursor } from "./cursor.svelte.ts";
import type { Look, Progress, ShownRun } from "./engine/answers.ts";
import type { EngineClient } from "./engine/client.ts";
import type { Words } from "./engine/recipe.ts";

interface Shown {
  /** Returns the words of the run. The run is computed again when they change. */
  readonly words: () => Words;
  readonly begins: (run: ShownRun, words: Words) => number;
  /** Called once the state at a step is known, unless a new run is being computed. */
  readonly onlook?: (step: number) => void;
}

export class Viewing {
  readonly cursor = new Cursor();
  run = $state.raw<ShownRun | null>(null);
  look = $state.raw<Look | null>(null);
  failure = $state("");
  /** The progress while a run is being computed. Otherwise empty. */
  making = $state("");
  readonly #engine: EngineClient;

  /** Call this while a component is being created, because it registers effects. */
  constructor(engine: EngineClient, { words, begins, onlook }: Shown) {
    this.#engine = engine;
    this.cursor.isShown = () => this.look?.step === this.cursor.step || this.failure !== "";
    $effect(() => {
      const asked = words();
      this.failure = "";
      this.making = "Preparing the run …";
      const tell = ({ phase, events, states }: Progress) => {
        const count = events > 0 ? `${events.toLocaleString("en")} events` : `${states.toLocaleString("en")} states`;
        if (words() === asked) this.making = `Preparing the run: ${count} ${phase}`;
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

  /** Stops computing a run. The previous run is lost along with its worker. */
  stop(): void {
    if (this.making === "") return;
    this.run = null;
    this.#engine.stop();
  }
}
