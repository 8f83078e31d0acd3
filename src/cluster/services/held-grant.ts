/** A grant of a lock in this process, from its acquisition to its release or loss. */
import type { Platform } from "../../runtime/platform/platform.ts";
import type { Grant } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import { requireRule, work as workRule } from "./known-options.ts";
import { OwnTenure } from "./tenure.ts";

interface HeldOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly token: number;
  readonly name: string;
  readonly what: string;
  /** Called when the grant has ended for a reason unknown to the algorithm. */
  readonly over: () => void;
  readonly onEnd: (reason: CoordinationError) => void;
}

/** The object that `acquire()` returns. */
export class HeldGrant extends OwnTenure implements Grant {
  readonly name: string;
  readonly #options: HeldOptions;

  constructor(options: HeldOptions) {
    super({ ...options, onOverdue: options.over });
    this.name = options.name;
    this.#options = options;
  }

  release(): Promise<void> {
    this.end(releasedAs(this.#options.what));
    this.#options.over();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/**
 * Acquires the lock, calls `work`, and releases the lock.
 * @throws the error that `acquire` or `work` throws; the reason of the grant's signal if the grant was lost before
 *   `work` finished
 */
export async function useGrant<T>(acquire: () => Promise<Grant>, work: (grant: Grant) => T | Promise<T>): Promise<T> {
  requireRule("the work of use()", work, workRule);
  const grant = await acquire();
  try {
    const value = await work(grant);
    if (!grant.isHeld && !isReleased(grant)) throw grant.signal.reason;
    return value;
  } finally {
    await grant.release();
  }
}

/** Whether the work released the grant itself, and therefore no longer relies on it. */
const isReleased = ({ signal }: Grant): boolean => (signal.reason as CoordinationError).code === "released";

/**
 * Returns the reason for a normal end. It has no stack trace, because creating one would take half as long as the rest
 * of the release.
 */
function releasedAs(what: string): CoordinationError {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, "stackTraceLimit", 0); // This has no effect if `Error` is frozen.
  const reason = new CoordinationError("released", "released", `${what} has been released`);
  Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  return reason;
}
