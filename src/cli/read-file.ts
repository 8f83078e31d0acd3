/** Files that a command is told of. */
import { readFileSync } from "node:fs";
import { UsageError, unexpected } from "../core/errors.ts";

/** @throws UsageError with this code where it cannot be read */
export function contentOf(file: string | 0, what: string, code: string, expected = "a readable file"): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code: why } = error as NodeJS.ErrnoException;
    throw new UsageError(code, `${unexpected(what, expected, file === 0 ? "-" : file)} (${why})`);
  }
}
