/** Waits until a member can acquire locks and lead: it can reach a majority, and knows who leads the log. */

import { MAX_WAIT_MS } from "../../runtime/longest-wait.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { MemberEvent, ReadyOptions } from "./api.ts";
import { CoordinationError, type Missing } from "./coordination-error.ts";
import { duration, type Rules, signal } from "./known-options.ts";
import { onAbort } from "./on-abort.ts";
import type { Feed } from "./reading.ts";

/** The rules for `ReadyOptions`. */
export const readyRules: Rules<ReadyOptions> = { timeoutMs: duration, signal };

/** The parts of a member that readiness depends on. */
export interface Waited {
  readonly platform: Platform;
  readonly events: Feed<MemberEvent>;
  /** The member's signal, which is aborted when it leaves or fails. */
  readonly signal: AbortSignal;
  /** Returns the requirement that the member does not meet, or null if it is ready. */
  missing(): Missing | null;
  /**
   * Returns why other members refuse this one, or why it refuses them, and how to fix it. Null if neither is the case.
   */
  obstacle(): string | null;
}

const SAYINGS: Record<Missing, string> = {
  "no-majority": "no majority of members is reachable: start other members, or check this member's links",
  "no-log-leader": "a majority is reachable, but no leader of the log has been elected yet",
};

/** @throws CoordinationError */
export async function whenReady(member: Waited, { timeoutMs, signal: abort }: ReadyOptions): Promise<void> {
  const over = new AbortController();
  const end = (): void => over.abort();
  const forgets = [onAbort(abort, end), onAbort(member.signal, end)];
  const { timers } = member.platform;
  const isTimed = timeoutMs !== undefined && timeoutMs <= MAX_WAIT_MS;
  const timer = isTimed ? timers.after(timeoutMs, end) : null;
  const changes = member.events.read(over.signal);
  try {
    for (let isOver = false; ; isOver = (await changes.next()).done === true) {
      if (member.signal.aborted) throw ended(member.signal.reason as CoordinationError);
      if (abort?.aborted) throw refusal("ready-aborted", member, "the wait was aborted", abort.reason);
      if (member.missing() === null) return;
      if (isOver) throw refusal("ready-timeout", member, `not within ${timeoutMs} ms`);
    }
  } finally {
    timers.cancel(timer);
    end();
    for (const forget of forgets) forget();
  }
}

function refusal(
  code: "ready-timeout" | "ready-aborted",
  member: Waited,
  why: string,
  cause?: unknown,
): CoordinationError {
  const missing = member.missing() ?? "no-majority";
  const reason = (missing === "no-majority" ? member.obstacle() : null) ?? SAYINGS[missing];
  return new CoordinationError(code, missing, `the member is not ready, ${why}: ${reason}`, { cause });
}

const ended = ({ code, message, cause }: CoordinationError): CoordinationError =>
  new CoordinationError(code, "never-acquired", message, { cause });
