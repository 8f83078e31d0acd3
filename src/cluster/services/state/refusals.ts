/** What the service refuses, as the callers of a member are told. */
import { UsageError } from "../../../core/errors.ts";
import type { Operation, Refusal, RefusalCode } from "../../../protocols/service/coordination-service/operations.ts";
import { type CoordinationCode, CoordinationError, type Phase } from "../coordination-error.ts";

/** Nothing is wrong with what was asked: it may be asked again. */
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

/** @param operation to a state machine: what applied it had not defined that. */
export function unknownOutcome(operation?: Operation): CoordinationError {
  const why =
    operation?.type === "execute"
      ? `the state machine "${operation.machine}" was not defined at this member, or at the one whose snapshot it was given, and so what came of it is not known here`
      : "this member has fallen behind, and no other remembers what came of it";
  return new CoordinationError("outcome-unknown", "uncertain", `${why}: it may have been done, once`);
}

/** Whether the same may be refused no longer in a moment. */
export const isPassing = (error: unknown): boolean =>
  error instanceof CoordinationError && (error.code === "overloaded" || error.code === "session-ended");

/** After so long what was refused for the moment is asked for again. */
export const ASK_AGAIN_MS = 50;

/** Whether it may have been done. */
export const isOutcomeUnknown = (error: unknown): boolean =>
  error instanceof CoordinationError && error.code === "outcome-unknown";

/** The same in the words of the call that met it. */
export function inWordsOf(what: string, error: unknown): unknown {
  if (!(error instanceof Error) || error.message.startsWith(what)) return error;
  const message = `${what}: ${error.message}`;
  if (error instanceof CoordinationError)
    return new CoordinationError(error.code, error.phase, message, { cause: error });
  return error instanceof UsageError ? new UsageError(error.code, message, { cause: error }) : error;
}
