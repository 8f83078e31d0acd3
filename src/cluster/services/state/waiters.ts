/** Keeps track of calls that wait for something in the log, and ends their waits. */
import { MAX_WAIT_MS } from "../../../runtime/longest-wait.ts";
import type { AcquireOptions } from "../api.ts";
import { CoordinationError } from "../coordination-error.ts";
import { onAbort } from "../on-abort.ts";
import type { Service } from "./service.ts";

type WaitedFor = Pick<Service, "use" | "closed" | "why" | "cause" | "maxWaiters" | "platform" | "counts">;

/** The waiting calls, by name. The number of calls per name is limited. */
export class Waiters {
  readonly #service: WaitedFor;
  readonly #byName = new Map<string, number>();

  constructor(service: WaitedFor) {
    this.#service = service;
  }

  get sum(): number {
    return [...this.#byName.values()].reduce((sum, count) => sum + count, 0);
  }

  /**
   * @throws CoordinationError if the call cannot wait, because there are too many waiters, its signal is aborted, or
   *   the service is closed
   */
  requireRoom(name: string, what: string, signal: AbortSignal | undefined): void {
    const { maxWaiters, closed } = this.#service;
    if (closed !== null)
      throw new CoordinationError(closed.code, "never-acquired", `${what}: ${closed.message}`, { cause: closed });
    this.#service.use();
    if (signal?.aborted === true) throw abortedIn(what, signal);
    if ((this.#byName.get(name) ?? 0) < maxWaiters) return;
    throw new CoordinationError(
      "too-many-waiters",
      "never-acquired",
      `${maxWaiters} calls from this process are already waiting for ${what}, which is the maximum`,
    );
  }

  /**
   * Adds a waiter.
   * @param giveUp called if the call times out or its signal is aborted, with the error to throw if nothing was granted
   * @returns a function that removes the waiter
   */
  enter(
    name: string,
    what: string,
    { timeoutMs, signal }: AcquireOptions,
    giveUp: (why: CoordinationError) => void,
  ): () => void {
    const { platform, counts } = this.#service;
    this.#count(name, 1);
    const forget = onAbort(signal, () => giveUp(abortedIn(what, signal as AbortSignal)));
    const timer =
      timeoutMs === undefined || timeoutMs > MAX_WAIT_MS
        ? null
        : platform.timers.after(timeoutMs, () => {
            counts.locks.timedOut += 1;
            const { why, cause } = this.#service;
            const text = `${what} was not acquired within ${timeoutMs} ms${why === "" ? "" : `: ${why}`}`;
            giveUp(new CoordinationError("acquire-timeout", "never-acquired", text, causeOf(cause)));
          });
    return () => {
      platform.timers.cancel(timer);
      forget();
      this.#count(name, -1);
    };
  }

  #count(name: string, by: 1 | -1): void {
    const waiting = (this.#byName.get(name) ?? 0) + by;
    if (waiting === 0) this.#byName.delete(name);
    else this.#byName.set(name, waiting);
  }
}

function abortedIn(what: string, { reason }: AbortSignal): CoordinationError {
  return new CoordinationError(
    "acquire-aborted",
    "never-acquired",
    `${what} was not acquired: the wait was aborted`,
    causeOf(reason),
  );
}

const causeOf = (cause: unknown): ErrorOptions => (cause === undefined ? {} : { cause });
