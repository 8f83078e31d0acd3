/** The timeout for a shared-state call, and the error if the call is not answered in time. */
import { EnvironmentError, UsageError } from "../../../core/errors.ts";
import { MAX_WAIT_MS } from "../../../runtime/longest-wait.ts";
import type { Platform, Timer } from "../../../runtime/platform/platform.ts";
import { type CoordinationCode, CoordinationError } from "../coordination-error.ts";
import { duration, type Rules, signal } from "../known-options.ts";
import { onAbort } from "../on-abort.ts";
import { inWordsOf } from "./refusals.ts";
import type { CallOptions } from "./state-api.ts";

/** The timeout for calls without `timeoutMs`. */
export const DEFAULT_TIMEOUT_MS = 10_000;

/** The rules for `CallOptions`. */
export const callRules: Rules<CallOptions> = { timeoutMs: duration, signal };

/** A call that waits for the log. */
export interface Call extends CallOptions {
  /** The name in error messages, such as `the write of "a" in the map "users"`. */
  readonly what: string;
  /** Whether an unanswered call may have taken effect. Read when the error is created. */
  readonly changes: boolean;
  /**
   * Returns a reason why the call is taking long, as a clause, in addition to the service's reason. Empty if unknown.
   */
  readonly why?: () => string;
}

/** Returns whether the caller is still waiting. An abandoned operation must not take effect after later ones. */
export type IsWanted = () => boolean;

/** A service's callbacks for all its calls. There is one object per service, since there are many calls. */
export interface Calls {
  /**
   * Called when a call begins.
   * @throws if the service accepts no more calls
   */
  begin(): void;
  end(): void;
  /** Returns why calls are not being answered, as a clause. Empty if unknown. */
  why(): string;
  /** Returns the error behind `why()`, if there is one. */
  cause?(): Error | undefined;
  /** Returns why no more calls are accepted. Null as long as they are. */
  closed(): CoordinationError | null;
}

/** Waits for the answer until the call times out or its signal is aborted. */
export function withinTime<T>(
  platform: Pick<Platform, "timers">,
  call: Call,
  answer: (isWanted: IsWanted) => Promise<T>,
  calls: Calls,
): Promise<T> {
  return new Promise((resolve, reject) => {
    requireOpen(calls.closed(), call.what);
    calls.begin();
    const awaited = new Awaited(platform.timers, call, calls, reject);
    if (call.signal?.aborted === true) return awaited.refuse();
    try {
      answer(() => awaited.isWanted).then(
        (value) => {
          awaited.end();
          resolve(value);
        },
        (error: unknown) => awaited.fail(error),
      );
    } catch (error) {
      awaited.fail(error);
    }
  });
}

/** @throws CoordinationError `never-sent` if the service is closed */
function requireOpen(closed: CoordinationError | null, what: string): void {
  if (closed !== null) throw endedIn(closed, { what, changes: false });
}

/** Returns the error for a call that was pending when the service ended. */
export function endedIn(
  closed: CoordinationError,
  { what, changes }: Pick<Call, "what" | "changes">,
): CoordinationError {
  return new CoordinationError(closed.code, changes ? "uncertain" : "never-sent", `${what}: ${closed.message}`, {
    cause: closed,
  });
}

/** Whether the host stopped before it answered, or in the same turn of the event loop as the call. */
const hasStopped = (error: unknown): boolean =>
  (error instanceof EnvironmentError && error.code === "stopped") ||
  (error instanceof UsageError && error.code === "not-running");

/** A pending call. There may be very many, so an error is created only on failure. */
class Awaited {
  readonly #timers: Platform["timers"];
  readonly #call: Call;
  readonly #calls: Calls;
  readonly #reject: (error: unknown) => void;
  isWanted = true;
  readonly #timer: Timer | null;
  readonly #forget: (() => void) | null;

  constructor(timers: Platform["timers"], call: Call, calls: Calls, reject: (error: unknown) => void) {
    this.#timers = timers;
    this.#call = call;
    this.#calls = calls;
    this.#reject = reject;
    const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = call;
    this.#timer = timeoutMs > MAX_WAIT_MS ? null : timers.after(timeoutMs, () => this.#isLate());
    this.#forget = signal ? onAbort(signal, () => this.#isAborted()) : null;
  }

  end(): void {
    if (!this.isWanted) return;
    this.isWanted = false;
    this.#timers.cancel(this.#timer);
    this.#forget?.();
    this.#calls.end();
  }

  fail(error: unknown): void {
    this.end();
    const closed = this.#calls.closed();
    const metItsEnd = closed !== null && (error === closed || hasStopped(error));
    const told = error instanceof Error ? error : new Error(String(error));
    this.#reject(metItsEnd ? endedIn(closed, this.#call) : inWordsOf(this.#call.what, told));
  }

  refuse(): void {
    const { what, signal } = this.#call;
    const text = `${what} was aborted before it began: it had no effect`;
    this.fail(new CoordinationError("request-aborted", "never-sent", text, { cause: signal?.reason }));
  }

  #isLate(): void {
    const { timeoutMs = DEFAULT_TIMEOUT_MS } = this.#call;
    this.#giveUp("request-timeout", `was not answered within ${timeoutMs} ms`, this.#calls.cause?.());
  }

  #isAborted(): void {
    this.#giveUp("request-aborted", "was aborted", this.#call.signal?.reason);
  }

  #giveUp(code: CoordinationCode, text: string, cause?: unknown): void {
    const { what, changes, why = () => "" } = this.#call;
    const known = changes ? "it may have taken effect, or may still take effect" : "it had no effect";
    const clauses = [this.#calls.why(), why(), known].filter((clause) => clause !== "");
    const message = `${what} ${text}: ${clauses.join("; ")}`;
    this.fail(new CoordinationError(code, changes ? "uncertain" : "never-sent", message, { cause }));
  }
}
