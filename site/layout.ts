/** The frame of every page: masthead, the way through a door, what is on the page, the page before and the next. */
import { escaped } from "./code.ts";
import { type Door, type Entry, readingOrder } from "./doors.ts";
import type { Heading } from "./markdown.ts";
import { addressOf, LABORATORY, relative } from "./places.ts";

/** Names of built files, from the root of the site. */
export interface Assets {
  readonly script: string;
  readonly styles: readonly string[];
  readonly icon: string;
}

export interface Frame {
  readonly address: string;
  readonly title: string;
  readonly description: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly doors: readonly Door[];
  /** The door in which the page stands, or null for the front page and for code. */
  readonly door: Door | null;
  readonly assets: Assets;
  /** How the page is laid out: `front`, `page` or `source`. */
  readonly kind: "front" | "page" | "source";
}

const MARK = `<svg viewBox="0 0 32 32" width="30" height="30" aria-hidden="true"><g class="quorums"><circle cx="12" cy="12.4" r="8.4"/><circle cx="20" cy="12.4" r="8.4"/><circle cx="16" cy="19.4" r="8.4"/></g><circle class="heart" cx="16" cy="15" r="2.3"/></svg>`;

/** Before the first paint, so that a page that is chosen to be dark never flashes; the laboratory has the same key. */
const THEME = `try{const t=localStorage.getItem("coterie.theme");if(t==="light"||t==="dark")document.documentElement.dataset.theme=t}catch{}`;

export function framed(frame: Frame): string {
  const { address, title, description, html, assets, kind } = frame;
  const to = (target: string): string => escaped(relative(address, target));
  const root = relative(address, "index.html").replace(/index\.html$/, "");
  return `<!doctype html>
<html lang="en" data-root="${root}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${escaped(description)}">
<title>${escaped(kind === "front" ? "Coterie" : `${title} · Coterie`)}</title>
<link rel="icon" type="image/svg+xml" href="${to(assets.icon)}">
${assets.styles.map((style) => `<link rel="stylesheet" href="${to(style)}">`).join("\n")}
<script>${THEME}</script>
<script type="module" src="${to(assets.script)}"></script>
</head>
<body class="${kind}">
<a class="skip" href="#content">Skip to the text</a>
${masthead(frame)}
<div class="columns">
${way(frame)}<main id="content">
${html}${neighbours(frame)}</main>
${contents(frame)}</div>
${foot(frame)}
</body>
</html>
`;
}

function masthead({ address, doors, door }: Frame): string {
  const to = (target: string): string => escaped(relative(address, target));
  const links = doors.map((each) => {
    const current = each.page === door?.page ? ' aria-current="true"' : "";
    return `<a href="${to(addressOf(each.page))}"${current}>${each.title}</a>`;
  });
  return `<header class="masthead">
<a class="brand" href="${to("index.html")}">${MARK}<span>Coterie</span></a>
<nav aria-label="Doors">${links.join("")}<a href="${to(LABORATORY)}">Laboratory</a></nav>
<div class="tools">
<button type="button" class="button search" data-search hidden><span>Search</span><kbd>/</kbd></button>
<label class="theme" hidden><span class="unseen">Theme</span><select class="button"><option value="auto">auto</option><option value="light">light</option><option value="dark">dark</option></select></label>
</div>
</header>`;
}

/** The pages of a door in their order. What a section stands for is open where the reader is inside it. */
function way({ address, door }: Frame): string {
  if (door === null) return "";
  const link = ({ page, section, title }: Entry): string => {
    const target = addressOf(page);
    const isCurrent = target === address && section === "";
    const href = escaped(relative(address, section === "" ? target : `${target}#${section}`));
    return `<a href="${href}"${isCurrent ? ' aria-current="page"' : ""}>${escaped(title)}</a>`;
  };
  const item = (entry: Entry): string => {
    if (entry.within.length === 0) return `<li>${link(entry)}</li>`;
    const inside = entry.section === "" ? [entry, ...entry.within] : entry.within;
    const isInside = inside.some(({ page }) => addressOf(page) === address);
    const inner = inside.map((each) => `<li>${link(each)}</li>`).join("");
    return `<li><details${isInside ? " open" : ""}><summary>${escaped(entry.title)}</summary><ul>${inner}</ul></details></li>`;
  };
  const groups = door.groups
    .filter(({ entries }) => entries.length > 0)
    .map(({ title, entries }) => `<h2>${escaped(title)}</h2>\n<ul>${entries.map(item).join("\n")}</ul>`);
  return `<nav class="way" aria-label="${door.title}">
<details class="fold" open><summary>${door.title}: all pages</summary>
<a class="door" href="${escaped(relative(address, addressOf(door.page)))}"${addressOf(door.page) === address ? ' aria-current="page"' : ""}>${door.title}</a>
${groups.join("\n")}
</details>
</nav>
`;
}

function contents({ headings, kind }: Frame): string {
  const shown = headings.filter(({ depth }) => depth === 2 || depth === 3);
  if (kind !== "page" || shown.length < 2) return "";
  const items = shown.map(
    ({ depth, id, text }) => `<li class="depth-${depth}"><a href="#${id}">${escaped(text)}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2>\n<ul>${items.join("\n")}</ul></nav>\n`;
}

function neighbours({ address, door }: Frame): string {
  if (door === null) return "";
  const order = readingOrder(door);
  const at = order.findIndex(({ page }) => addressOf(page) === address);
  const before = at < 0 ? undefined : (order[at - 1] ?? { page: door.page, title: door.title });
  const next = order[at + 1];
  const link = (to: { page: string; title: string } | undefined, rel: "prev" | "next", word: string): string =>
    to === undefined
      ? ""
      : `<a rel="${rel}" href="${escaped(relative(address, addressOf(to.page)))}"><span>${word}</span>${escaped(to.title)}</a>`;
  return `<nav class="neighbours" aria-label="Reading order">${link(before, "prev", "Before")}${link(next, "next", at < 0 ? "Begin" : "Next")}</nav>\n`;
}

function foot({ address }: Frame): string {
  const to = (target: string): string => escaped(relative(address, target));
  return `<footer><p>Coterie, under the MIT licence. <a href="${to("glossary.html")}">Glossary</a> · <a href="${to("architecture.html")}">Architecture</a> · <a href="${to("contributing.html")}">Contributing</a> · <a href="${to("changelog.html")}">Changes</a></p></footer>`;
}
