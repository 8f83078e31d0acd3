/**
 * How long something that was acquired is certainly held. The algorithm reports a loss, but the report may be late,
 * since this process may have been paused. The last confirmed deadline is therefore checked too, both by a timer and on
 * each read of `isHeld` or `signal.aborted`. Code that runs after a pause but before the timer fires thus detects the
 * loss.
 */
import { callBack } from "../../runtime/callers-fault.ts";
import { MAX_WAIT_MS } from "../../runtime/longest-wait.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import type { Tenure } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import { requireRule, work } from "./known-options.ts";
import { controllerForMany } from "./on-abort.ts";

export interface TenureOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly token: number;
  /** The name in error messages, such as `the lock "invoice-42"`. */
  readonly what: string;
  /** Called once if the deadline passes before the tenure has ended for another reason. */
  readonly onOverdue: () => void;
  /** Called once when the tenure has ended. */
  readonly onEnd?: (reason: CoordinationError) => void;
}

/** Something that this process holds until its deadline passes or it is lost. */
export class OwnTenure implements Tenure {
  readonly token: number;
  readonly #options: TenureOptions;
  readonly #controller = controllerForMany();
  readonly #listeners = new Set<(deadline: number) => void>();
  #deadline: number | null = null;
  /** The deadline on the system's clock, which keeps running while a machine sleeps. */
  #wallDeadline = 0;
  #timer: Timer | null = null;

  constructor(options: TenureOptions) {
    this.token = options.token;
    this.#options = options;
    askFirst(this.#controller.signal, () => this.#loseIfOverdue());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isHeld(): boolean {
    return !this.signal.aborted; // The getter of `aborted` reads the clock first.
  }

  get deadline(): number | null {
    return this.#deadline;
  }

  onDeadline(listener: (deadline: number) => void): () => void {
    requireRule("the listener of onDeadline()", listener, work);
    this.#listeners.add(listener);
    if (this.#deadline !== null) callBack(listener, this.#deadline);
    return () => void this.#listeners.delete(listener);
  }

  /** Called when the algorithm has confirmed the tenure until `deadline`. Null means that the tenure has expired. */
  confirm(deadline: number | null): void {
    this.#loseIfOverdue();
    if (this.#controller.signal.aborted) return;
    if (deadline === null) return this.#overdue();
    if (this.#deadline !== null && deadline <= this.#deadline) return;
    this.#deadline = deadline;
    const { clock } = this.#options.platform;
    this.#wallDeadline = clock.wall() + (deadline - clock.now());
    if (this.#timer === null) this.#watch();
    this.#loseIfOverdue();
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) callBack(listener, deadline);
  }

  /** Ends the tenure with the given reason. Later calls have no effect. */
  end(reason: CoordinationError): void {
    this.#options.platform.timers.cancel(this.#timer);
    this.#timer = null;
    this.#listeners.clear();
    if (hasAborted(this.#controller.signal)) return;
    this.#controller.abort(reason);
    this.#options.onEnd?.(reason);
  }

  lose(why = "it could not be confirmed in time, or another member has it"): void {
    const text = `${this.#options.what} is lost: ${why}`;
    this.end(new CoordinationError("grant-lost", "lost", text));
  }

  #watch(): void {
    const { clock, timers } = this.#options.platform;
    const waitMs = Math.max(0, (this.#deadline ?? 0) - clock.now());
    this.#timer = timers.after(Math.min(waitMs, MAX_WAIT_MS), () => {
      this.#timer = null;
      this.#loseIfOverdue();
      if (!this.#controller.signal.aborted) this.#watch(); // The deadline has been extended in the meantime.
    });
  }

  #loseIfOverdue(): void {
    if (this.#deadline === null || hasAborted(this.#controller.signal)) return;
    const { clock } = this.#options.platform;
    if (clock.now() >= this.#deadline || clock.wall() >= this.#wallDeadline) this.#overdue();
  }

  #overdue(): void {
    this.lose();
    this.#options.onOverdue();
  }
}

/** Whether this process ended the tenure on purpose. */
export const isGivenUp = ({ code }: CoordinationError): boolean => GIVEN_UP.includes(code);
const GIVEN_UP = ["released", "lead-aborted", "member-left"];

const prototype = AbortSignal.prototype;
const abortedOf = Object.getOwnPropertyDescriptor(prototype, "aborted")?.get as (this: AbortSignal) => boolean;
const hasAborted = (signal: AbortSignal): boolean => abortedOf.call(signal);

/**
 * Makes a signal check the deadline whenever `aborted` is read. After a pause, pending events may run before the timer
 * that would abort the signal, and they must not see a stale value.
 */
function askFirst(signal: AbortSignal, ask: () => void): void {
  const asking = (): boolean => {
    ask();
    return hasAborted(signal);
  };
  Object.defineProperties(signal, {
    aborted: { get: asking, enumerable: true },
    throwIfAborted: {
      value(): void {
        if (asking()) throw signal.reason;
      },
    },
  });
}
