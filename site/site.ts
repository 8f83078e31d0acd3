/** The documentation site as a map of files, made of docs/ and the pages of the root that belong to it. */
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { type Door, doorsOf, readingOrder, titleOf } from "./doors.ts";
import { type Assets, type Frame, framed } from "./layout.ts";
import { type Rendered, rendered, unmarked } from "./markdown.ts";
import { addressOf, Places, pictureAddress } from "./places.ts";
import { searchIndex } from "./search.ts";
import { sourcesOf } from "./sources.ts";

export interface Site {
  /** Text by address, from the root of the site. */
  readonly texts: ReadonlyMap<string, string>;
  /** Pictures by address: where they lie in the repository, from its root. */
  readonly pictures: ReadonlyMap<string, string>;
  readonly pages: number;
  readonly sources: number;
}

/** Pages beside docs/ that belong to it. */
const atTheRoot = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
const FRONT = "docs/index.md";

/**
 * @param root of the repository
 * @throws Error if a link leads nowhere, or a page stands in no door
 */
export function siteOf(root: string, assets: Assets): Site {
  const texts = new Map(pagesIn(root).map((page) => [page, readFileSync(join(root, page), "utf8")]));
  const doors = doorsOf(texts);
  const places = new Places(root, titlesOf(texts, doors));
  const pages = [...texts].map(([page, text]) => ({
    page,
    title: titleOf(text),
    ...rendered(root, page, text, places),
  }));
  const sources = sourcesOf(root, places.wanted.sources);

  const files = new Map<string, string>();
  const put = (frame: Omit<Frame, "doors" | "assets">): void =>
    void files.set(frame.address, framed({ ...frame, doors, assets }));
  for (const { page, title, html, headings } of pages)
    put({
      address: addressOf(page),
      title,
      description: beginningOf(html),
      html: page === FRONT ? withDoors(html) : html,
      headings,
      door: doorOf(doors, page),
      kind: page === FRONT ? "front" : "page",
    });
  for (const { path, address, html } of sources)
    put({ address, title: path, description: path, html, headings: [], door: null, kind: "source" });
  files.set("assets/search.json", searchIndex(pages.flatMap(foundIn)));
  const pictures = new Map([...places.wanted.pictures].map((path) => [pictureAddress(path), path]));
  return { texts: files, pictures, pages: pages.length, sources: sources.length };
}

function pagesIn(root: string): string[] {
  const files = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" });
  const pages = files.filter((file) => file.endsWith(".md")).map((file) => `docs/${file.split(sep).join("/")}`);
  return [...pages.sort(), ...atTheRoot];
}

/** What the doors call a page, or its own heading. */
function titlesOf(texts: ReadonlyMap<string, string>, doors: readonly Door[]): Map<string, string> {
  const titles = new Map([...texts].map(([page, text]) => [page, titleOf(text)]));
  for (const { page, title } of doors.flatMap(readingOrder)) titles.set(page, title);
  return titles;
}

const doorOf = (doors: readonly Door[], page: string): Door | null =>
  doors.find((door) => door.page === page || readingOrder(door).some((entry) => entry.page === page)) ?? null;

/** On the front page the chapters that lead to a door stand beside each other, as doors do. */
function withDoors(html: string): string {
  const [before = "", ...chapters] = html.split(/(?=<h2 )/);
  const isDoor = (chapter: string): boolean => /^<h2 [^>]*><a /.test(chapter);
  const doors = chapters.filter(isDoor).map((chapter) => `<section>${chapter}</section>`);
  const others = chapters.filter((chapter) => !isDoor(chapter));
  return `<div class="hero">${before}</div>\n<div class="doors">${doors.join("\n")}</div>\n${others.join("\n")}`;
}

/** The first paragraph, for search machines. */
const beginningOf = (html: string): string => unmarked(/<p>(.*?)<\/p>/s.exec(html)?.[1] ?? "").slice(0, 160);

function foundIn({ page, title, sections }: Rendered & { readonly page: string; readonly title: string }) {
  return sections.map(({ id, heading, text }) => ({
    address: `${addressOf(page)}${id === "" ? "" : `#${id}`}`,
    page: title,
    heading,
    text: text.trim().replaceAll(/\s+/g, " "),
  }));
}
