/** Finds the files of this package, such as its docs and the scripts that it starts. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
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

/**
 * Returns a path to the page that the reader of a message can open. The path is relative to the working directory, such
 * as `node_modules/coterie/docs/operate/recovery.md`, or absolute if the page is far away.
 * @param page for example `recovery.md`
 */
export function docsPage(page: string): string {
  const path = packageFile(`docs/${page}`);
  const near = relative(process.cwd(), path);
  const isFar = isAbsolute(near) || near.startsWith(`..${sep}..${sep}`);
  return isFar ? path : near;
}
