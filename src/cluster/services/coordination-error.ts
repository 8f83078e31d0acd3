/** What can become of a wish to lead or to hold, said so that a program can tell the cases apart. */
import { EnvironmentError } from "../../core/errors.ts";

/** `never-acquired`: it was not had at any time. `lost`: it was had, and no longer is. `released`: it was given back. */
export type Phase = "never-acquired" | "lost" | "released";

export type CoordinationCode =
  | "acquire-timeout"
  | "acquire-aborted"
  | "too-many-waiters"
  | "lead-aborted"
  | "instance-refused"
  | "grant-lost"
  | "released"
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
