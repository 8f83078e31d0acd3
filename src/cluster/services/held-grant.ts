/** What this process holds of a lock, from its grant to its release or loss. */
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
  /** It has ended, and not because the algorithm says so. */
  readonly over: () => void;
  readonly onEnd: (reason: CoordinationError) => void;
}

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
 * Acquires, works and releases.
 * @throws the error of `acquire` or of the work; the reason of the grant's signal if the grant was lost before the work had ended
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

/** The work has released it: from then on its caller relies on it no more. */
const isReleased = ({ signal }: Grant): boolean => (signal.reason as CoordinationError).code === "released";

/** An end that is wished: nobody looks for its cause in a stack, which would take as long as half of the rest of a release. */
function releasedAs(what: string): CoordinationError {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, "stackTraceLimit", 0); // Frozen, it stays as it is.
  const reason = new CoordinationError("released", "released", `${what} has been released`);
  Reflect.set(Error, "stackTraceLimit", stackTraceLimit);
  return reason;
}
