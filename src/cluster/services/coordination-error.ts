/** The error of a call to lead, lock, send or share, with a code and a phase that programs can match. */
import { EnvironmentError } from "../../core/errors.ts";
import type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

export type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

/** Why a member is not ready. */
export type Missing = Extract<Phase, "no-majority" | "no-log-leader">;

/**
 * An error caused by the caller's signal is an `AbortError` by name, as in Node's own functions; its `cause` is the
 * signal's reason.
 */
const aborted = new Set<CoordinationCode>([
  "acquire-aborted",
  "lead-aborted",
  "send-aborted",
  "ready-aborted",
  "request-aborted",
]);

/** Whether the caller closed its member or client itself. Its iterators then end; after a failure they reject. */
export const isOwnEnd = ({ code }: CoordinationError): boolean => code === "member-left" || code === "client-closed";

/**
 * A call of a member or client failed because of the cluster, a timeout or a signal. `code` names the reason; `phase`
 * reports whether the operation may have taken effect.
 */
export class CoordinationError extends EnvironmentError {
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
