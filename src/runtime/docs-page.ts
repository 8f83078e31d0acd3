/** Where a page of the docs is that a message names. The package has them beside its code. */
import { isAbsolute, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The path of a page as whoever reads the message can open it: from the folder in which the program runs, such as
 * `node_modules/coterie/docs/operate/recovery.md`; whole, if it lies further away.
 * @param page such as `recovery.md`
 */
export function docsPage(page: string): string {
  const path = fileURLToPath(new URL(`../../docs/${page}`, import.meta.url));
  const near = relative(process.cwd(), path);
  const isFar = isAbsolute(near) || near.startsWith(`..${sep}..${sep}`);
  return isFar ? path : near;
}
