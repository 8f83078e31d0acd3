/** Finds the docs page that a message refers to. The package ships the docs next to its code. */
import { isAbsolute, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Returns a path to the page that the reader of a message can open. The path is relative to the working directory, such
 * as `node_modules/coterie/docs/operate/recovery.md`, or absolute if the page is far away.
 * @param page for example `recovery.md`
 */
export function docsPage(page: string): string {
  const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url));
  const near = relative(process.cwd(), path);
  const isFar = isAbsolute(near) || near.startsWith(`..${sep}..${sep}`);
  return isFar ? path : near;
}
