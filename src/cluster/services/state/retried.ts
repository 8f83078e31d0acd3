/**
 * Calls that read, decide, and write if nothing of what they have read has changed meanwhile; otherwise once more. All tries are within
 * the time of the one call, and a pause that grows is between them, of random length: so those part who are in each other's way.
 */
import { sleep } from "../../../runtime/platform/sleep.ts";
import { CoordinationError } from "../coordination-error.ts";
import { type Call, DEFAULT_TIMEOUT_MS, type IsWanted } from "./calls.ts";
import type { Service } from "./service.ts";
import type { CallOptions } from "./state-api.ts";

/** So often another may have been faster. */
const MAX_TRIES = 1_000;
const FIRST_PAUSE_MS = 2;
const LAST_PAUSE_MS = 64;
/** What is asked of the service within the call is given up behind the call itself, so that the call says why: clocks' timers are not exact. */
const BEHIND_MS = 10;

export interface Retried {
  /** In an error's words, such as `the transaction`. */
  readonly what: string;
  /** Of which another may have made something else. */
  readonly read: string;
  readonly options: CallOptions;
}

/** What one try is given. */
export interface Try {
  /** Whether anybody waits for it still: otherwise nothing may be written any more. */
  readonly isWanted: IsWanted;
  /** For what is asked of the service within: what is left of the time. */
  within(): CallOptions;
  /** Once this is under way, it may be done though nobody has said so. @returns null where another was faster: it is not done. */
  write<T>(write: () => Promise<T | null>): Promise<T | null>;
}

type Outcome<R> = { readonly value: R } | { readonly error: unknown };

/** @param once one try; null: another was faster. What it throws is its caller's, as it is. */
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
  tries === 1 ? `another was faster with ${read}` : `${tries} times in a row another was faster with ${read}`;
