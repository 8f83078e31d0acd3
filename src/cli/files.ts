/** Reads and writes the files named in a command's arguments. */
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { UsageError, unexpected } from "../core/errors.ts";

/**
 * Returns the content of a file or file descriptor.
 * @throws UsageError with `code` if it cannot be read
 */
export function contentOf(file: string | 0, what: string, code: string, expected = "a readable file"): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code: why } = error as NodeJS.ErrnoException;
    throw new UsageError(code, `${unexpected(what, expected, file === 0 ? "-" : file)} (${why})`);
  }
}

/**
 * Checks whether files can be written before a command starts long work. Does not change existing files.
 *
 * @param files the files by option
 * @throws UsageError if one of them cannot be written
 */
export function requireWritable(files: Readonly<Record<string, string | undefined>>): void {
  for (const [option, file] of Object.entries(files)) {
    if (file === undefined) continue;
    const found = statSync(file, { throwIfNoEntry: false });
    // Opening and closing a pipe here would end it for its reader.
    if (found !== undefined && !found.isFile() && !found.isDirectory()) continue;
    closeSync(opened(option, file, "a"));
    if (found === undefined) rmSync(file);
  }
}

/**
 * Opens a file.
 * @throws UsageError if the file cannot be written
 */
export function opened(option: string, file: string, flags: "a" | "w"): number {
  try {
    return openSync(file, flags);
  } catch (error) {
    throw unwritable(option, file, error);
  }
}

/** @throws UsageError if the file cannot be written */
export function writeWhole(option: string, file: string, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content);
  } catch (error) {
    throw unwritable(option, file, error);
  }
}

function unwritable(option: string, file: string, error: unknown): UsageError {
  const { code } = error as NodeJS.ErrnoException;
  return new UsageError("bad-argument", `${unexpected(option, "a writable file", file)} (${code})`);
}
