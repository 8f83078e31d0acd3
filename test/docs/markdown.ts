/** Reads the pages for readers, and their fenced blocks. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import GithubSlugger from "github-slugger";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Block {
  readonly page: string;
  readonly line: number;
  /** The word after the fence, or an empty string. */
  readonly language: string;
  readonly text: string;
}

export const pages: readonly string[] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ...markdownIn("docs")];

function markdownIn(folder: string): string[] {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".md")).map((file) => join(folder, file));
}

/** The blocks of all pages. */
export const blocks: readonly Block[] = pages.flatMap((page) => {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map((match) => ({
    page,
    line: text.slice(0, match.index).split("\n").length,
    language: match[1] as string,
    text: match[2] as string,
  }));
});

/** Returns the targets of a page's links and pictures, relative to the root of the repository. */
export function linksOf(page: string): { file: string; heading: string }[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/\]\(([^)#:\s]*)(?:#([^)]*))?\)|src="([^":]+)"/g)].map(([, path, heading = "", image]) => ({
    file: path === "" ? page : join(dirname(page), path ?? (image as string)),
    heading,
  }));
}

/**
 * Returns a function that maps the headings of one page, in order, to their anchors on GitHub and the site. A repeated
 * heading gets a number.
 */
export function anchors(): (heading: string) => string {
  const slugger = new GithubSlugger();
  return (heading) => slugger.slug(heading.replaceAll(/<[^>]+>|[`*]|\[([^\]]*)\]\([^)]*\)/g, "$1"));
}
