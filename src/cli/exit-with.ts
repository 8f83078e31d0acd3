/** How a command ends that has an exit code of its own to hand on. `message`, if there is one, is said on stderr. */
import { constants } from "node:os";

export class ExitWith extends Error {
  constructor(
    readonly exitCode: number,
    message = "",
  ) {
    super(message);
  }
}

/** What shells give as the exit code of a process that a signal has ended. */
export const codeAfter = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];
