/** Signals that ask for an end: while a command runs they are the command's, and otherwise they end the waiting. */
import { codeAfter } from "../exit-with.ts";
import type { Supervisor } from "./supervisor.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** The first that came, if one has. */
  received: NodeJS.Signals | null = null;
  /** Whether Ctrl-C has been pressed. Of signals that come at once the system delivers them in its own order. */
  #isInterrupted = false;
  readonly #controller = new AbortController();
  #supervisor: Supervisor | null = null;

  constructor() {
    for (const name of SIGNALS) process.on(name, () => this.#take(name));
  }

  /** Aborted when an end is asked for and no command runs. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The supervisor whose command signals go to; null: none runs. */
  handTo(supervisor: Supervisor | null): void {
    this.#supervisor = supervisor;
  }

  #take(name: NodeJS.Signals): void {
    const isAgain = this.received !== null;
    this.received ??= name;
    if (this.#supervisor !== null) {
      if (this.#isInterrupted && name === "SIGINT") this.#supervisor.kill();
      else this.#supervisor.signal(name);
      this.#isInterrupted ||= name === "SIGINT";
    } else if (isAgain) process.exit(codeAfter(name));
    else this.#controller.abort();
  }
}
