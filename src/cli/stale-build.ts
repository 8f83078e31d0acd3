/** Detects, in a checkout, that the build is older than its sources. */
import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * Returns the first source file in `folders`, ignoring tests, that is newer than `built`. The path is relative to
 * `root`.
 */
export function newerSource(root: string, built: string, folders: readonly string[]): string | null {
  const at = timeOf(join(root, built)) ?? 0;
  const sources = folders.flatMap((folder) => filesIn(join(root, folder)));
  const newer = sources.find((file) => (timeOf(file) ?? 0) > at);
  return newer === undefined ? null : relative(root, newer);
}

const isSource = (file: string): boolean => /\.(ts|svelte|css|html)$/.test(file) && !/\.(test|test-d)\.ts$/.test(file);

/** Returns the source files in a folder. Empty if the folder does not exist, as in an installed package. */
function filesIn(folder: string): string[] {
  if (timeOf(folder) === null) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter(isSource).map((file) => join(folder, file));
}

/** Returns when a file was last modified, in milliseconds, or null if it does not exist. */
export function timeOf(file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null;
}
