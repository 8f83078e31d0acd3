/** Signals that ask for an end: while a command runs they are the command's, and otherwise they end the waiting. */
import { codeAfter } from "../exit-with.ts";
import type { Keeper } from "./keeper.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** Which came first, if one has. */
  asked: NodeJS.Signals | null = null;
  /** Whether Ctrl-C has been pressed. Of signals that come at once the system delivers them in its own order. */
  private isInterrupted = false;
  private readonly controller = new AbortController();
  private keeper: Keeper | null = null;

  constructor() {
    for (const name of SIGNALS) process.on(name, () => this.take(name));
  }

  /** Aborted when an end is asked for and no command runs. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** The keeper whose command signals go to; null: none runs. */
  handTo(keeper: Keeper | null): void {
    this.keeper = keeper;
  }

  private take(name: NodeJS.Signals): void {
    const isAgain = this.asked !== null;
    this.asked ??= name;
    if (this.keeper !== null) {
      if (this.isInterrupted && name === "SIGINT") this.keeper.kill();
      else this.keeper.signal(name);
      this.isInterrupted ||= name === "SIGINT";
    } else if (isAgain) process.exit(codeAfter(name));
    else this.controller.abort();
  }
}
