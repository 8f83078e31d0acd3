/** What can become of a wish to lead, to hold or to send, said so that a program can tell the cases apart. */
import { EnvironmentError } from "../../core/errors.ts";

/**
 * Of what is held, `never-acquired`: it was not had at any time; `lost`: it was had, and no longer is; `released`: it was
 * given back. Of a message, `never-sent`: nobody gets it; `uncertain`: others may have it, or get it yet; `missed`: it was
 * delivered, and its reader has not had it.
 */
export type Phase = "never-acquired" | "lost" | "released" | "never-sent" | "uncertain" | "missed";

export type CoordinationCode =
  | "acquire-timeout"
  | "acquire-aborted"
  | "too-many-waiters"
  | "lead-aborted"
  | "instance-refused"
  | "grant-lost"
  | "released"
  | "send-timeout"
  | "send-aborted"
  | "send-uncertain"
  | "channel-full"
  | "channel-closed"
  | "reader-too-slow"
  | "member-left"
  | "member-failed";

export class CoordinationError extends EnvironmentError {
  declare readonly code: CoordinationCode;

  constructor(
    code: CoordinationCode,
    readonly phase: Phase,
    message: string,
    options?: ErrorOptions,
  ) {
    super(code, message, options);
  }
}
