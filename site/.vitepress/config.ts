/**
 * The documentation site. It uses VitePress rather than Starlight: only the entry pages are translated, so Starlight's
 * translations are not needed, and VitePress includes a search that runs in the browser without another build step.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { slug } from "github-slugger";
import { type DefaultTheme, defineConfig, type MarkdownOptions } from "vitepress";
import { apiPages, sections, titleOf } from "./sidebar.ts";

type Markdown = Parameters<NonNullable<MarkdownOptions["config"]>>[0];

const root = fileURLToPath(new URL("../..", import.meta.url));
/**
 * The URL of the repository, such as https://example.org/coterie. Without it, pages have no edit links and no links to
 * code.
 */
const repository = process.env.COTERIE_REPOSITORY?.replace(/\/$/, "");
const base = process.env.COTERIE_BASE ?? "/";
const LABORATORY = "laboratory/laboratory.html";

const linkTo = (page: string): string => `/${page.replace(/(^|\/)index$/, "$1")}`;

const sidebarOf = (section: string): DefaultTheme.SidebarItem[] =>
  (sections[section] ?? []).map(({ text, pages: [first = "", ...others], isFolded }) => ({
    text,
    // The first page of a folded group is its overview. With a link, the group is not a button around another button.
    ...(isFolded === true ? { collapsed: true, link: linkTo(first) } : {}),
    items: (isFolded === true ? others : [first, ...others]).map((page) => ({
      text: titleOf(page).split(": ")[0] ?? page,
      link: linkTo(page),
    })),
  }));

const api: DefaultTheme.SidebarItem = {
  text: "API",
  items: apiPages().map((name) => ({ text: name, link: `/reference/api/${name}` })),
};

const scenarioOf = (image: string): string | undefined => {
  const name = /images\/protocols\/([\w-]+)\.svg$/.exec(image)?.[1];
  return name !== undefined && existsSync(join(root, `scenarios/${name}.yaml`)) ? name : undefined;
};

const PLACE = /^(?:\?embed)?#\/(?:gallery|run|check|compare|tour)(?:\?[^\s]*)?$/;
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Replaces pictures of runs with live runs, links laboratory addresses, and points links to code at the repository. */
function withRuns(md: Markdown): void {
  const { image, code_inline: code, html_block: html } = md.renderer.rules;
  md.renderer.rules.image = (tokens, at, options, env, self) => {
    const token = tokens[at];
    const scenario = scenarioOf(token?.attrGet("src") ?? "");
    const picture = image?.(tokens, at, options, env, self) ?? "";
    return scenario === undefined
      ? picture
      : `<LiveRun place="#/run?scenario=${scenario}" title="${escaped(token?.content ?? "")}">${picture}</LiveRun>`;
  };
  md.renderer.rules.code_inline = (tokens, at, options, env, self) => {
    const shown = code?.(tokens, at, options, env, self) ?? "";
    const content = tokens[at]?.content ?? "";
    return PLACE.test(content)
      ? `<a href="${escaped(base + LABORATORY + content)}" target="_self">${shown}</a>`
      : shown;
  };
  md.renderer.rules.html_block = (tokens, at, options, env, self) => {
    const place = /^<!-- laboratory: (#\/\S+) -->/.exec(tokens[at]?.content ?? "")?.[1];
    if (place !== undefined) return `<LiveRun place="${escaped(place)}" title="Live run" open />\n`;
    return html?.(tokens, at, options, env, self) ?? "";
  };
  md.core.ruler.push("links to code", ({ tokens, env }) => {
    for (const { children } of tokens) linkCode(children ?? [], env.relativePath as string);
  });
}

interface Token {
  type: string;
  tag: string;
  attrs: [string, string][] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

function linkCode(tokens: readonly Token[], page: string): void {
  const dropped: boolean[] = [];
  for (const token of tokens) {
    if (token.type === "link_open") {
      const path = targetOutside(page, token.attrGet("href") ?? "");
      dropped.push(path !== null && path !== "README.md" && repository === undefined);
      if (path === null) continue;
      if (path === "README.md") token.attrSet("href", base);
      else if (repository !== undefined)
        token.attrSet("href", `${repository}/${isFolder(path) ? "tree" : "blob"}/main/${path}`);
      else Object.assign(token, { type: "span_open", tag: "span", attrs: [["title", `${path}, in the repository`]] });
    } else if (token.type === "link_close" && dropped.pop() === true)
      Object.assign(token, { type: "span_close", tag: "span" });
  }
}

/** Returns the path of a link's target from the root of the repository, or null if the site has that page. */
function targetOutside(page: string, href: string): string | null {
  if (/^[a-z]+:|^[#/]/.test(href)) return null;
  const path = relative(root, join(root, "docs", dirname(page), href.replace(/[?#].*$/, "")));
  return path.startsWith("docs/") && !path.startsWith("docs/internals/") ? null : path;
}

const isFolder = (path: string): boolean => existsSync(join(root, path)) && statSync(join(root, path)).isDirectory();

export default defineConfig({
  title: "Coterie",
  description:
    "Leader election, locks, shared state and ordered messages for Node.js services, without another server.",
  base,
  srcDir: "build/docs",
  outDir: "../build/site",
  cacheDir: "../build/vitepress-cache",
  cleanUrls: false,
  lastUpdated: false,
  ignoreDeadLinks: [/\/laboratory\//],
  markdown: {
    config: withRuns,
    anchor: { slugify: (heading) => slug(heading) },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  head: [
    ["link", { rel: "icon", type: "image/svg+xml", href: `${base}mark.svg` }],
    ["meta", { name: "color-scheme", content: "light dark" }],
  ],
  locales: {
    root: { label: "English", lang: "en-US" },
    es: { label: "Español", lang: "es" },
    pt: { label: "Português (Brasil)", lang: "pt-BR" },
    ru: { label: "Русский", lang: "ru" },
  },
  themeConfig: {
    logo: "/mark.svg",
    i18nRouting: false, // Only the entry pages are translated.
    nav: [
      { text: "Guide", link: "/guide/", activeMatch: "^/guide/" },
      { text: "Operate", link: "/operate/", activeMatch: "^/operate/" },
      { text: "Reference", link: "/reference/", activeMatch: "^/reference/" },
      { text: "Learn", link: "/learn/", activeMatch: "^/learn/" },
      { text: "Verify", link: "/verify/", activeMatch: "^/verify/" },
      { text: "Laboratory", link: `/${LABORATORY}`, target: "_self" },
    ],
    sidebar: {
      ...Object.fromEntries(Object.keys(sections).map((section) => [`/${section}/`, sidebarOf(section)])),
      "/reference/": [...sidebarOf("reference"), api],
    },
    outline: { level: [2, 3], label: "On this page" },
    ...(repository === undefined
      ? {}
      : { editLink: { pattern: `${repository}/edit/main/docs/:path`, text: "Edit this page" } }),
    footer: { message: "Released under the MIT license." },
    search: {
      provider: "local",
      options: {
        detailedView: true,
        miniSearch: {
          searchOptions: {
            fuzzy: 0.2,
            prefix: true,
            boost: { title: 4, text: 2, titles: 1 },
            // VitePress copies this function into the browser, so it cannot use anything defined outside it.
            processTerm: (term: string): string | string[] => {
              const synonyms: Record<string, string[]> = {
                brain: ["quorum", "partition"],
                split: ["partition"],
                failover: ["crash", "election", "fail-over"],
                cron: ["schedule", "election"],
                redlock: ["redis", "mutex", "fencing"],
                lock: ["mutex"],
                leader: ["election"],
                kv: ["map"],
                pubsub: ["channel"],
                broadcast: ["channel", "multicast"],
                raft: ["consensus"],
                zookeeper: ["curator"],
                k8s: ["kubernetes"],
                backup: ["snapshot", "recovery"],
                ttl: ["lease"],
              };
              const word = term.toLowerCase();
              return [word, ...(synonyms[word] ?? [])];
            },
          },
        },
      },
    },
  },
  vite: { build: { chunkSizeWarningLimit: 2_000 } },
});
