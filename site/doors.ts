/**
 * The three doors of the site, and the order in which each is read. They are written where readers see them, in docs/learn.md,
 * docs/use.md and docs/verify.md: what stands in a numbered list there is the reading order, each page once. A link to a
 * section, such as `algorithms.md#election`, stands for the pages that the rows of its table begin with. What is deeper lies in a
 * folder of its page's name, `docs/flp/proof.md` behind `docs/flp.md`, which links to it; it is read behind that page.
 */
import { posix } from "node:path";
import { marked, type Token, type Tokens } from "marked";
import { anchors } from "./anchors.ts";

export interface Entry {
  /** The page from the root of the repository, such as `docs/flp.md`. */
  readonly page: string;
  /** A section of it, or "" for the whole page. */
  readonly section: string;
  readonly title: string;
  /** The pages that a section stands for, and those that are deeper than the page. */
  readonly within: readonly Entry[];
}

export interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}

export interface Door {
  readonly name: "learn" | "use" | "verify";
  readonly page: string;
  readonly title: string;
  readonly groups: readonly Group[];
}

const names = ["learn", "use", "verify"] as const;

/**
 * @param texts of all pages, by path
 * @throws Error if a page stands in no door, or at two places
 */
export function doorsOf(texts: ReadonlyMap<string, string>): readonly Door[] {
  const doors = names.map((name): Door => {
    const page = `docs/${name}.md`;
    const text = texts.get(page);
    if (text === undefined) throw new Error(`expected ${page}, a door of the site`);
    return { name, page, title: titleOf(text), groups: groupsOf(page, texts) };
  });
  const places = [...doors.map(({ page }) => page), ...doors.flatMap(readingOrder).map(({ page }) => page)];
  const twice = places.filter((page, at) => places.indexOf(page) < at);
  if (twice.length > 0) throw new Error(`expected each page once in the doors, got ${twice.join(", ")} twice`);
  const missing = [...texts.keys()].filter((page) => !places.includes(page) && page !== "docs/index.md");
  if (missing.length > 0)
    throw new Error(
      `expected every page in a numbered list of ${doors.map(({ page }) => page).join(", ")}, missed ${missing.join(", ")}`,
    );
  return doors;
}

/** The pages of a door, one after the other. */
export const readingOrder = (door: Door): readonly Entry[] =>
  door.groups.flatMap(({ entries }) =>
    entries.flatMap((entry) => (entry.section === "" ? [entry, ...entry.within] : entry.within)),
  );

/** The text of the first heading, without its marks. */
export function titleOf(text: string): string {
  const heading = /^# (.+)$/m.exec(text)?.[1];
  if (heading === undefined)
    throw new Error(`expected a page with a heading, got ${JSON.stringify(text.slice(0, 60))}`);
  return heading.replaceAll("`", "");
}

function groupsOf(page: string, texts: ReadonlyMap<string, string>): Group[] {
  const groups: { title: string; entries: Entry[] }[] = [];
  for (const token of marked.lexer(texts.get(page) ?? "")) {
    if (token.type === "heading" && token.depth === 2) groups.push({ title: token.text, entries: [] });
    if (token.type !== "list" || !token.ordered) continue;
    const links = (token as Tokens.List).items.flatMap((item) => linksIn(item.tokens).slice(0, 1));
    groups.at(-1)?.entries.push(...links.map((link) => entryOf(page, link, texts)));
  }
  return groups;
}

function entryOf(from: string, { href, text }: Tokens.Link, texts: ReadonlyMap<string, string>): Entry {
  const [path = "", section = ""] = href.split("#");
  const page = posix.join(posix.dirname(from), path);
  const target = texts.get(page);
  if (target === undefined) throw new Error(`${from}: expected a page of the docs in the reading order, got ${href}`);
  const within = section === "" ? deeperThan(page, texts) : rowsOf(page, section, texts);
  return { page, section, title: text.replaceAll("`", ""), within };
}

/**
 * The pages in a folder of the page's name, in the order in which it first links to them.
 * @throws Error if it does not link to one
 */
function deeperThan(page: string, texts: ReadonlyMap<string, string>): Entry[] {
  const folder = page.replace(/\.md$/, "/");
  const text = texts.get(page) ?? "";
  const placeOf = (deeper: string): number => {
    const link = posix.relative(posix.dirname(page), deeper);
    const places = [text.indexOf(`](${link})`), text.indexOf(`](${link}#`)].filter((place) => place >= 0);
    if (places.length === 0) throw new Error(`${page}: expected a link to ${link}, which is deeper than this page`);
    return Math.min(...places);
  };
  return [...texts.keys()]
    .filter((each) => each.startsWith(folder) && !each.slice(folder.length).includes("/"))
    .map((each) => ({ page: each, place: placeOf(each) }))
    .sort((a, b) => a.place - b.place)
    .map((each) => ({ page: each.page, section: "", title: titleOf(texts.get(each.page) ?? ""), within: [] }));
}

/** The pages that the rows of a section's table begin with. */
function rowsOf(page: string, section: string, texts: ReadonlyMap<string, string>): Entry[] {
  const nameOf = anchors();
  let isThere = false;
  const rows: Entry[] = [];
  for (const token of marked.lexer(texts.get(page) ?? "")) {
    if (token.type === "heading") isThere = nameOf(token.text) === section;
    if (token.type !== "table" || !isThere) continue;
    for (const [first] of (token as Tokens.Table).rows)
      for (const { href } of linksIn(first?.tokens ?? []).slice(0, 1)) {
        const target = posix.join(posix.dirname(page), href);
        rows.push({ page: target, section: "", title: titleOf(texts.get(target) ?? ""), within: [] });
        rows.push(...deeperThan(target, texts));
      }
  }
  return rows;
}

function linksIn(tokens: readonly Token[]): Tokens.Link[] {
  return tokens.flatMap((token) => {
    if (token.type === "link") return [token as Tokens.Link];
    return "tokens" in token && token.tokens !== undefined ? linksIn(token.tokens) : [];
  });
}
