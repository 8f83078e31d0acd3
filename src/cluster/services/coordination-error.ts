/** The error that a member's or client's calls throw, with a code and a phase that programs can match. */
import { EnvironmentError } from "../../core/errors.ts";
import type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

export type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

/** Why a member is not ready. */
export type Missing = Extract<Phase, "no-majority" | "no-log-leader">;

/**
 * Errors caused by the caller's signal have the name `AbortError`, as in Node's own functions. Their `cause` is the
 * signal's reason.
 */
const aborted = new Set<CoordinationCode>([
  "acquire-aborted",
  "lead-aborted",
  "send-aborted",
  "ready-aborted",
  "request-aborted",
]);

/**
 * Whether the caller itself closed its member or client. Its iterators then end normally. After a failure, they reject.
 */
export const isOwnEnd = ({ code }: CoordinationError): boolean => code === "member-left" || code === "client-closed";

/**
 * Thrown if a call to a member or client fails because of the cluster, a timeout or a signal. `code` identifies the
 * reason. `phase` reports whether the operation may have taken effect.
 */
export class CoordinationError extends EnvironmentError {
  /** The reason, such as `acquire-timeout`. docs/reference/errors.md lists all codes. */
  declare readonly code: CoordinationCode;

  constructor(
    code: CoordinationCode,
    readonly phase: Phase,
    message: string,
    options?: ErrorOptions,
  ) {
    super(code, message, options);
    if (aborted.has(code)) this.name = "AbortError";
  }
}
