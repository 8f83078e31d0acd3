/**
 * Calls that read, decide, and then write if nothing they have read has changed in the meantime. Otherwise, they try
 * again. All attempts share the call's timeout. Pauses between attempts grow and have random lengths, so that
 * conflicting callers drift apart.
 */
import { sleep } from "../../../runtime/platform/sleep.ts";
import { CoordinationError } from "../coordination-error.ts";
import { type Call, DEFAULT_TIMEOUT_MS, type IsWanted } from "./calls.ts";
import type { Service } from "./service.ts";
import type { CallOptions } from "./state-api.ts";

/** The maximum number of attempts. */
const MAX_TRIES = 1_000;
const FIRST_PAUSE_MS = 2;
const LAST_PAUSE_MS = 64;
/**
 * How much longer inner requests wait than the call itself. Timers are not exact, and the call's own timeout error is
 * the one to report.
 */
const BEHIND_MS = 10;

/** A call that retries after conflicts. */
export interface Retried {
  /** The name in error messages, such as `the transaction`. */
  readonly what: string;
  /** How error messages refer to the data that it reads. */
  readonly read: string;
  readonly options: CallOptions;
}

/** The context of one attempt. */
export interface Try {
  /** Whether the caller is still waiting. If not, nothing may be written. */
  readonly isWanted: IsWanted;
  /** Returns the options for inner requests, with the remaining time. */
  within(): CallOptions;
  /**
   * Calls `write`. From then on, the call may have taken effect even if it gets no answer.
   * @returns null after a conflict. In this case, nothing was written
   */
  write<T>(write: () => Promise<T | null>): Promise<T | null>;
}

type Outcome<R> = { readonly value: R } | { readonly error: unknown };

/** @param once makes one attempt, and returns null after a conflict. Its errors are rethrown unchanged */
export async function retried<R>(
  service: Pick<Service, "call" | "platform">,
  { what, read, options }: Retried,
  once: (attempt: Try) => Promise<{ readonly value: R } | null>,
): Promise<R> {
  const { clock, timers, random } = service.platform;
  const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
  const until = clock.now() + timeoutMs;
  let tries = 0;
  let mayBeDone = false;
  const call: Call = {
    what,
    timeoutMs,
    signal,
    get changes() {
      return mayBeDone;
    },
    why: () => (tries === 0 ? "" : tooFast(tries, read)),
  };
  const all = async (isWanted: IsWanted): Promise<Outcome<R>> => {
    const attempt: Try = {
      isWanted,
      within: () => ({ timeoutMs: Math.max(0, until - clock.now()) + BEHIND_MS, signal }),
      async write(write) {
        if (!isWanted()) return null;
        mayBeDone = true;
        const done = await write();
        mayBeDone = done !== null;
        return done;
      },
    };
    for (; tries < MAX_TRIES && isWanted(); tries++) {
      const done = await once(attempt);
      if (done !== null) return done;
      await sleep(timers, random.fraction() * Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries));
    }
    return { error: new CoordinationError("overloaded", "never-sent", `${what}: ${tooFast(tries, read)}`) };
  };
  const outcome = await service.call(call, (isWanted) => all(isWanted).catch((error: unknown) => ({ error })));
  if ("error" in outcome) throw outcome.error;
  return outcome.value;
}

const tooFast = (tries: number, read: string): string =>
  tries === 1
    ? `another writer changed ${read} first`
    : `another writer changed ${read} first, ${tries} times in a row`;
