/** What can become of a wish to lead, to hold or to send, said so that a program can tell the cases apart. */
import { EnvironmentError } from "../../core/errors.ts";

/**
 * Of a member that is not ready, what is missing: `no-majority`, or `no-log-leader`. Of what is held, `never-acquired`: it was not had at any time; `lost`: it was had, and no longer is; `released`: it was
 * given back; of an arrival at a barrier, `uncertain`: it may have been counted. Of a message, `never-sent`: nobody gets it; `uncertain`: others may have it, or get it yet; `missed`: it was
 * delivered, and its reader has not had it. Of a call of shared state, `never-sent`: nothing was done, and nothing will be; `uncertain`: it was done, or is
 * done yet, or never.
 */
export type Phase = "never-acquired" | "lost" | "released" | "never-sent" | "uncertain" | "missed" | Missing;

export type Missing = "no-majority" | "no-log-leader";

export type CoordinationCode =
  | "acquire-timeout"
  | "acquire-aborted"
  | "too-many-waiters"
  | "lead-aborted"
  | "instance-refused"
  | "grant-lost"
  | "released"
  | "ready-timeout"
  | "ready-aborted"
  | "send-timeout"
  | "send-aborted"
  | "send-uncertain"
  | "channel-full"
  | "channel-closed"
  | "reader-too-slow"
  | "state-refused"
  | "request-timeout"
  | "request-aborted"
  | "overloaded"
  | "outcome-unknown"
  | "compacted"
  | "state-full"
  | "overflow"
  | "session-ended"
  | "machine-failed"
  | "change-under-way"
  | "last-voter"
  | "member-left"
  | "member-removed"
  | "member-failed"
  | "no-endpoint"
  | "forbidden"
  | "client-refused"
  | "client-closed";

/** What a caller's signal ended is an `AbortError` by name, as in Node's own functions; the signal's reason is its `cause`. */
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
