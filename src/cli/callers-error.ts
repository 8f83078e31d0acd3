/** Which failures of the surroundings are for the caller of the command: exit code 2, not 1. */
import { EnvironmentError } from "../core/errors.ts";

/**
 * What is wrong with an address or a file that somebody wrote into the config: it is for them to write another. A port that is
 * taken is not among them: it may be free in a moment, as after a restart, so a supervisor should try again.
 */
const CALLERS_CODES = [
  ...["EADDRNOTAVAIL", "EACCES", "ENOTFOUND", "EAI_AGAIN"],
  ...["ENOENT", "EISDIR", "ENOTDIR", "EEXIST", "EROFS"],
];
const JOURNAL_CODES = [
  "journal-in-use",
  "damaged-journal",
  "foreign-journal",
  "other-journal",
  "journal-full",
  "wrong-members",
  "member-removed",
];

export function isForTheCaller(error: unknown): error is EnvironmentError {
  if (!(error instanceof EnvironmentError)) return false;
  if (JOURNAL_CODES.includes(error.code)) return true;
  const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
  return code !== undefined && CALLERS_CODES.includes(code);
}
