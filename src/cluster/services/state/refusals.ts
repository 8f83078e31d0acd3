/** Converts the service's refusals to errors for a member's calls. */
import { UsageError } from "../../../core/errors.ts";
import type { Operation, Refusal, RefusalCode } from "../../../protocols/service/coordination-service/operations.ts";
import { type CoordinationCode, CoordinationError, type Phase } from "../coordination-error.ts";

/** Refusals that depend on the service's state. All others mean that the request is invalid. */
const states: Partial<Record<RefusalCode, readonly [CoordinationCode, Phase]>> = {
  full: ["state-full", "never-sent"],
  "too-many": ["state-full", "never-sent"],
  overloaded: ["overloaded", "never-sent"],
  overflow: ["overflow", "never-sent"],
  "not-held": ["grant-lost", "lost"],
  "session-expired": ["session-ended", "never-sent"],
  "outcome-unknown": ["outcome-unknown", "uncertain"],
  compacted: ["compacted", "missed"],
  "last-voter": ["last-voter", "never-sent"],
  "change-under-way": ["change-under-way", "never-sent"],
  "machine-failed": ["machine-failed", "never-sent"],
};

export function refusalOf({ code, reason }: Refusal): CoordinationError | UsageError {
  const state = states[code];
  if (state !== undefined) return new CoordinationError(...state, reason);
  return new UsageError(code === "in-use" ? "other-setting" : code, reason);
}

/**
 * Returns the error for an unknown outcome.
 * @param operation if it is a state machine's command, the error names the machine, which was not defined where the
 *   command was applied
 */
export function unknownOutcome(operation?: Operation): CoordinationError {
  const why =
    operation?.type === "execute"
      ? `the state machine "${operation.machine}" was not defined at this member, or at the member that sent its snapshot, so its outcome is unknown here`
      : "this member has fallen behind, and no other member remembers the outcome";
  return new CoordinationError("outcome-unknown", "uncertain", `${why}: it may have taken effect, at most once`);
}

/** Whether the same request may succeed shortly. */
export const isPassing = (error: unknown): boolean =>
  error instanceof CoordinationError && (error.code === "overloaded" || error.code === "session-ended");

/** The delay before repeating a request after a temporary refusal. */
export const ASK_AGAIN_MS = 50;

/** Whether the failed operation may have taken effect. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof CoordinationError && error.code === "outcome-unknown";

/** Returns the same error, naming the call that failed. */
export function inWordsOf(what: string, error: unknown): unknown {
  if (!(error instanceof Error) || error.message.startsWith(what)) return error;
  const message = `${what}: ${error.message}`;
  if (error instanceof CoordinationError)
    return new CoordinationError(error.code, error.phase, message, { cause: error });
  return error instanceof UsageError ? new UsageError(error.code, message, { cause: error }) : error;
}
