/** A page of markdown as HTML: what GitHub shows, with links of the site, and with runs where GitHub shows pictures of them. */
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Marked, type Tokens } from "marked";
import { anchors } from "./anchors.ts";
import { escaped, highlighted } from "./code.ts";
import { addressOf, LABORATORY, type Places, relative } from "./places.ts";

export interface Heading {
  readonly depth: number;
  readonly id: string;
  readonly text: string;
}

/** What stands under one heading, as search knows it. */
export interface Section {
  readonly id: string;
  readonly heading: string;
  readonly text: string;
}

export interface Rendered {
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly Section[];
}

/** A place in the laboratory, as pages write it: `#/check?protocol=bully`. */
const PLACE = /^(?:\?embed)?#\/(?:gallery|run|check|compare|tour)(?:\?[^\s]*)?$/;
/** Where a page shows a run: invisible on GitHub. */
const EMBEDDED = /^<!-- laboratory: (#\/\S+) -->\s*$/;

/**
 * @param page from the root of the repository
 * @throws Error if a link leads nowhere
 */
export function rendered(root: string, page: string, text: string, places: Places): Rendered {
  const headings: Heading[] = [];
  const sections: { id: string; heading: string; text: string }[] = [{ id: "", heading: "", text: "" }];
  const nameOf = anchors();
  const laboratory = (place: string): string => relative(addressOf(page), `${LABORATORY}${place}`);
  const note = (words: string): void => {
    const section = sections.at(-1);
    if (section !== undefined) section.text += ` ${words}`;
  };

  const md = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text: raw }) {
        const id = nameOf(raw);
        const inner = this.parser.parseInline(tokens);
        const words = unmarked(inner);
        headings.push({ depth, id, text: words });
        sections.push({ id: depth === 1 ? "" : id, heading: depth === 1 ? "" : words, text: "" });
        if (depth === 1) return `<h1 id="${id}">${inner}</h1>\n`;
        // For the mouse; others have the links of the contents, and a heading is read out without it.
        return `<h${depth} id="${id}">${inner} <a class="anchor" href="#${id}" tabindex="-1" aria-hidden="true">#</a></h${depth}>\n`;
      },
      paragraph({ tokens }) {
        const [only, ...others] = tokens;
        if (only?.type === "image" && others.length === 0) return figure(only as Tokens.Image);
        const inner = this.parser.parseInline(tokens);
        note(unmarked(inner));
        return `<p>${inner}</p>\n`;
      },
      listitem(item) {
        const inner = this.parser.parse(item.tokens);
        if (!item.loose) note(unmarked(inner));
        return `<li>${inner}</li>\n`;
      },
      code({ text: code, lang = "" }) {
        note(code);
        const language = lang.split(/\s/)[0] ?? "";
        return `<pre data-language="${escaped(language)}"><code>${highlighted(code, language)}</code></pre>\n`;
      },
      codespan({ text: code }) {
        const words = escaped(code);
        return PLACE.test(code)
          ? `<a href="${escaped(laboratory(code))}"><code>${words}</code></a>`
          : `<code>${words}</code>`;
      },
      table({ header, rows }) {
        const cell = (tag: string, { tokens, align }: Tokens.TableCell): string => {
          const inner = this.parser.parseInline(tokens);
          note(unmarked(inner));
          // An empty heading is no heading: a screen reader would read it out before each cell.
          const name = tag === "th" && inner === "" ? "td" : tag;
          const scope = name === "th" ? ' scope="col"' : "";
          return `<${name}${scope}${align === null ? "" : ` class="${align}"`}>${inner}</${name}>`;
        };
        const row = (tag: string, cells: Tokens.TableCell[]): string =>
          `<tr>${cells.map((each) => cell(tag, each)).join("")}</tr>\n`;
        const head = header.some(({ text: words }) => words !== "") ? `<thead>${row("th", header)}</thead>` : "";
        return `<div class="table"><table>${head}<tbody>${rows.map((cells) => row("td", cells)).join("")}</tbody></table></div>\n`;
      },
      link({ href, tokens }) {
        const words = this.parser.parseInline(tokens);
        // Beside files the name of one says enough; a reader of the site wants to know what the page is.
        const inner = words === basename(href) ? escaped(places.titleOf(page, href) ?? words) : words;
        return `<a href="${escaped(places.link(page, href))}"${/^https?:/.test(href) ? ' rel="noreferrer"' : ""}>${inner}</a>`;
      },
      image: (token) => picture(token),
      html({ text: code }) {
        const [, place] = EMBEDDED.exec(code) ?? [];
        if (place !== undefined) return run(place);
        return code.replaceAll(/\b(src|href)="([^"#:]+)"/g, (_whole, attribute: string, path: string) => {
          const to = attribute === "src" ? places.picture(page, path) : places.link(page, path);
          return `${attribute}="${escaped(to)}"`;
        });
      },
    },
  });

  const picture = ({ href, text: words }: Tokens.Image): string =>
    `<img src="${escaped(places.picture(page, href))}" alt="${escaped(words)}" loading="lazy">`;

  /** A picture of a scenario is also a run: the page puts the laboratory in its place when it is asked to. */
  function figure(image: Tokens.Image): string {
    const shown = `<a href="${escaped(places.picture(page, image.href))}">${picture(image)}</a>`;
    const scenario = /images\/protocols\/([\w-]+)\.svg$/.exec(image.href)?.[1];
    if (scenario === undefined || titleOfScenario(root, scenario) === null) return `<figure>${shown}</figure>\n`;
    const place = `#/run?scenario=${scenario}`;
    return (
      `<figure class="run" data-run="${escaped(laboratory(`?embed${place}`))}" data-title="${escaped(image.text)}">${shown}` +
      `<figcaption><button type="button" class="button" data-start hidden>Run it here</button> <a href="${escaped(laboratory(place))}">Open it in the laboratory</a></figcaption></figure>\n`
    );
  }

  function run(place: string): string {
    const scenario = /[?&]scenario=([\w-]+)/.exec(place)?.[1];
    const title = scenario === undefined ? "The laboratory" : titleOfScenario(root, scenario);
    if (title === null) throw new Error(`${page}: expected a scenario of this repository, got ${place}`);
    return (
      `<figure class="run embedded"><iframe src="${escaped(laboratory(`?embed${place}`))}" title="${escaped(title)}" loading="lazy"></iframe>` +
      `<figcaption><a href="${escaped(laboratory(place))}">Open it in the laboratory</a></figcaption></figure>\n`
    );
  }

  const html = md.parse(text, { async: false });
  return { html, headings, sections: sections.filter((section) => section.heading !== "" || section.text !== "") };
}

/** The words of HTML that was rendered here. */
export const unmarked = (html: string): string =>
  html
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&")
    .trim();

/** The name of a scenario, or null if there is none of that file name. */
function titleOfScenario(root: string, name: string): string | null {
  const file = join(root, "scenarios", `${name}.yaml`);
  if (!existsSync(file)) return null;
  return /^name: *"?(.*?)"?$/m.exec(readFileSync(file, "utf8"))?.[1] ?? name;
}
