/** The service's refusals, which are the results of operations and queries that have no effect. */
import { oneOf, type Shape, text, variants } from "../../../core/shape.ts";

/** The result of an operation or query that had no effect, with a code for programs and a reason for people. */
export type Refusal = { type: "refused"; code: RefusalCode; reason: string };

/** All codes of a `Refusal`. */
export const refusalCodes = [
  /** An operation, a key or a name is too large. */
  "too-large",
  /** The service's state has reached its size limit. */
  "full",
  /** There are more waiters, items or names than allowed. */
  "too-many",
  /** This member has too many operations in progress. */
  "overloaded",
  "bad-operation",
  /** A counter would leave the range of safe integers. */
  "overflow",
  /** The name is in use with a different capacity or number of parties. */
  "in-use",
  /** The session has no grant or item with this token. */
  "not-held",
  /** The session ended before the operation was applied. The operation has not been applied and will not be. */
  "session-expired",
  /** The session ended, and this member does not know whether the operation was applied. */
  "outcome-unknown",
  /** The changes after the given revision are no longer available. */
  "compacted",
  /** This member has not defined the state machine. */
  "unknown-machine",
  "machine-failed",
  /** Codes for changes to the member list. */
  "unknown-member",
  "member-exists",
  "last-voter",
  /** The voters are already being changed, and only one such change is allowed at a time. */
  "change-under-way",
] as const;
/** The code of a `Refusal`. */
export type RefusalCode = (typeof refusalCodes)[number];

/** Creates a `Refusal`. */
export const refuse = (code: RefusalCode, reason: string): Refusal => ({ type: "refused", code, reason });

/** The fields of a refusal, for use in a union of answers. */
export const refusalFields = { code: oneOf(...refusalCodes), reason: text(1_000) };
/** The shape of a refusal. */
export const refusalShape: Shape<Refusal> = variants<Refusal>({ refused: refusalFields });
