/** Where the links of a site lead, for tests: pages by address, as they are built. */
import { posix } from "node:path";

export interface Link {
  readonly from: string;
  readonly href: string;
  /** Where it leads, from the root of the site, and to which place there. */
  readonly to: string;
  readonly hash: string;
}

/** Links, pictures, frames and scripts of a page that lead to files of the site. */
export function linksOf(address: string, html: string): Link[] {
  return [...html.matchAll(/\s(?:href|src|data-run)="([^"]*)"/g)].flatMap(([, found = ""]) => {
    const href = found.replaceAll("&amp;", "&");
    if (/^[a-z]+:/.test(href)) return [];
    const [, path = "", hash = ""] = /^([^?#]*)(?:\?[^#]*)?(?:#(.*))?$/s.exec(href) ?? [];
    const to = path === "" ? address : posix.join(posix.dirname(address), path);
    return [{ from: address, href, to, hash: decodeURIComponent(hash) }];
  });
}

export const idsOf = (html: string): string[] => [...html.matchAll(/\sid="([^"]*)"/g)].map(([, id = ""]) => id);

/** Every page that links lead to, from one page on. */
export function reachedFrom(start: string, pages: ReadonlyMap<string, string>): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (reached.has(at)) continue;
    reached.add(at);
    for (const { to } of linksOf(at, pages.get(at) ?? "")) if (pages.has(to)) open.push(to);
  }
  return reached;
}
