/** Finds the files of this package, such as its docs and the scripts that it starts. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Code runs from `src`, or bundled from `dist`, so its distance from the root varies. */
function rootAbove(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : rootAbove(dirname(folder));
}

const ROOT = rootAbove(dirname(fileURLToPath(import.meta.url)));

/** Returns the path of a file or folder. @param path relative to the package, such as `docs/index.md` */
export const packageFile = (path: string): string => join(ROOT, path);

/** Returns this package's version. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { readonly version: string }).version;
