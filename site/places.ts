/** Where everything lies on the site, and what the links of a page become there. */
import { existsSync, statSync } from "node:fs";
import { join, posix } from "node:path";

/** The front page, which stands for README.md as well. */
const HOME = "docs/index.md";
export const LABORATORY = "laboratory/laboratory.html";

/** The address of a page of the docs, from the root of the site. */
export const addressOf = (page: string): string =>
  page.startsWith("docs/")
    ? page.replace(/^docs\//, "").replace(/\.md$/, ".html")
    : page.toLowerCase().replace(/\.md$/, ".html");

/** From one address to another, so that the site works under any path. */
export function relative(from: string, to: string): string {
  const [, path = "", rest = ""] = /^([^?#]*)(.*)$/s.exec(to) ?? [];
  return `${posix.relative(posix.dirname(from), path)}${rest}`;
}

/** What pages have asked for while they were rendered. */
export interface Wanted {
  /** Pictures, from the root of the repository. */
  readonly pictures: Set<string>;
  /** Files and folders of code, each with the pages that link to it. */
  readonly sources: Map<string, Set<string>>;
}

export class Places {
  readonly #root: string;
  readonly #titles: ReadonlyMap<string, string>;
  readonly wanted: Wanted = { pictures: new Set(), sources: new Map() };

  /** @param titles of the pages of the docs, by their paths from the root of the repository */
  constructor(root: string, titles: ReadonlyMap<string, string>) {
    this.#root = root;
    this.#titles = titles;
  }

  /** Of the page of the docs to which a link of another leads, or null if it leads elsewhere. */
  titleOf(page: string, href: string): string | null {
    return this.#titles.get(posix.join(posix.dirname(page), href)) ?? null;
  }

  /**
   * Where a link of a page leads on the site, from that page. Pages of the docs are pages here; code is shown on a page of its
   * own; the root's README.md is the front page.
   * @throws Error if nothing is there
   */
  link(page: string, href: string): string {
    if (/^(?:[a-z]+:|#)/.test(href)) return href;
    const { target, hash } = this.#target(page, href);
    return relative(addressOf(page), `${this.#addressOf(page, target)}${hash}`);
  }

  picture(page: string, src: string): string {
    if (/^[a-z]+:/.test(src)) return src;
    const { target } = this.#target(page, src);
    this.wanted.pictures.add(target);
    return relative(addressOf(page), pictureAddress(target));
  }

  #target(page: string, href: string): { target: string; hash: string } {
    const [path = "", ...rest] = href.split("#");
    const target = posix.join(posix.dirname(page), decodeURI(path)).replace(/\/$/, "");
    if (target.startsWith("..") || !existsSync(join(this.#root, target)))
      throw new Error(`${page}: expected a link to a file of this repository, got ${href}`);
    return { target, hash: rest.length === 0 ? "" : `#${rest.join("#")}` };
  }

  #addressOf(page: string, target: string): string {
    if (target === "README.md") return addressOf(HOME);
    if (this.#titles.has(target)) return addressOf(target);
    if (target === "docs/protocols") return addressOf("docs/algorithms.md");
    if (target.startsWith("docs/images/")) {
      this.wanted.pictures.add(target);
      return pictureAddress(target);
    }
    const isFolder = statSync(join(this.#root, target)).isDirectory();
    const pages = this.wanted.sources.get(target) ?? new Set();
    this.wanted.sources.set(target, pages.add(page));
    return sourceAddress(target, isFolder);
  }
}

export const pictureAddress = (path: string): string => path.replace(/^docs\//, "");
export const sourceAddress = (path: string, isFolder: boolean): string =>
  isFolder ? `source/${path}/index.html` : `source/${path}.html`;
