/** The outcome of a call to lead, hold, send or share, with a code and a phase that programs can match. */
import { EnvironmentError } from "../../core/errors.ts";
import type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

export type { CoordinationCode, Phase } from "../../runtime/error-codes.ts";

/** The obstacle for a member that is not ready. */
export type Missing = Extract<Phase, "no-majority" | "no-log-leader">;

/** An error caused by the caller's signal is an `AbortError` by name, as in Node's own functions; its `cause` is the signal's reason. */
const aborted = new Set<CoordinationCode>([
  "acquire-aborted",
  "lead-aborted",
  "send-aborted",
  "ready-aborted",
  "request-aborted",
]);

/** Whether the caller ended its member or client itself. Its iterators end then; after a failure they reject. */
export const isOwnEnd = ({ code }: CoordinationError): boolean => code === "member-left" || code === "client-closed";

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
