/** Finds the docs page that a message refers to. The package ships the docs next to its code. */
import { isAbsolute, relative, sep } from "node:path";
import { packageFile } from "./package-files.ts";

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
