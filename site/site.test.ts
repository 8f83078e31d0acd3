/** The documentation site, crawled as it is built: no link, place or picture is missing, and every page is reached. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { TestedLaboratory } from "../studio/src/laboratory/engine/laboratory-under-test.ts";
import { placeOf } from "../studio/src/laboratory/engine/recipe.ts";
import { tours } from "../studio/src/laboratory/tours/tours.ts";
import { idsOf, linksOf, reachedFrom } from "./crawl.ts";
import { doorsOf, readingOrder } from "./doors.ts";
import { rendered } from "./markdown.ts";
import { Places } from "./places.ts";
import { searchIn } from "./search.ts";
import { type Site, siteOf } from "./site.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const assets = { script: "assets/site.js", styles: ["assets/site.css"], icon: "assets/mark.svg" };
/** What `npm run docs` puts beside the pages. */
const beside = new Set([...Object.values(assets).flat(), "laboratory/laboratory.html"]);

describe("the documentation site", () => {
  let site: Site;
  let pages: ReadonlyMap<string, string>;
  beforeAll(() => {
    site = siteOf(root, assets);
    pages = new Map([...site.texts].filter(([address]) => address.endsWith(".html")));
  });

  it("has a page for each page of docs/", () => {
    const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".md"))
      .map((file) => file.replace(/\.md$/, ".html"));
    expect([...pages.keys()]).toEqual(expect.arrayContaining(docs));
  });

  it("has no broken link, picture or place on a page", () => {
    const ids = new Map([...pages].map(([address, html]) => [address, new Set(idsOf(html))]));
    const links = [...pages].flatMap(([address, html]) => linksOf(address, html));
    expect(links.length).toBeGreaterThan(pages.size);
    const broken = links.filter(({ to, hash }) => {
      if (pages.has(to)) return hash !== "" && !ids.get(to)?.has(hash);
      return !beside.has(to) && !site.pictures.has(to);
    });
    expect(broken.map(({ from, href }) => `${from}: ${href}`)).toEqual([]);
    expect([...site.pictures.values()].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  const runsOf = (address: string): string[] =>
    linksOf(address, pages.get(address) ?? "").flatMap(({ to, hash }) =>
      to.startsWith("laboratory/") && hash.startsWith("/run?") ? [`#${hash}`] : [],
    );

  it("leads from the page of each protocol to a run of it in the laboratory", () => {
    const addresses = [...pages.keys()].filter((address) => /^protocols\/[^/]+$/.test(address));
    expect(addresses.length).toBeGreaterThan(35);
    expect(addresses.filter((address) => runsOf(address).length === 0)).toEqual([]);
  });

  it("opens there the runs that the pages of the protocols lead to", { tags: ["long"] }, async () => {
    const laboratory = new TestedLaboratory();
    for (const hash of new Set([...pages.keys()].filter((address) => address.startsWith("protocols/")).flatMap(runsOf)))
      expect.soft((await laboratory.run(placeOf(hash).words)).steps.length, hash).toBeGreaterThan(1);
  });

  it("names scenarios and tours of the laboratory that are there", () => {
    const places = [...pages].flatMap(([address, html]) =>
      linksOf(address, html).flatMap(({ to, hash, href }) =>
        to.startsWith("laboratory/") && hash !== "" ? [{ href, words: placeOf(`#${hash}`).words }] : [],
      ),
    );
    expect(places.length).toBeGreaterThan(50);
    const names = new Set(tours.map(({ name }) => name));
    const broken = places.filter(
      ({ words: { scenario, tour } }) =>
        (scenario !== undefined && !existsSync(join(root, `scenarios/${scenario}.yaml`))) ||
        (tour !== undefined && !names.has(tour)),
    );
    expect(broken).toEqual([]);
  });

  it("gives each place on a page one name", () => {
    const twice = [...pages].flatMap(([address, html]) => {
      const ids = idsOf(html);
      return ids.filter((id, at) => ids.indexOf(id) < at).map((id) => `${address}#${id}`);
    });
    expect(twice).toEqual([]);
  });

  it("is reached whole from its front page", () => {
    const reached = reachedFrom("index.html", pages);
    expect([...pages.keys()].filter((address) => !reached.has(address))).toEqual([]);
  });

  it("finds a page by its title, a section by its heading, and nothing by what stands nowhere", () => {
    const search = searchIn(site.texts.get("assets/search.json") ?? "");
    expect(search("ricart agrawala")[0]?.address).toBe("protocols/ricart-agrawala.html");
    expect(search("a folder is lost").map(({ address }) => address)).toContain("journals.html#a-folder-is-lost");
    expect(search("fencing token").map(({ address }) => address)).toContain(
      "glossary.html#being-excluded-and-being-let-in",
    );
    expect(search("xyzzyplugh")).toEqual([]);
  });
});

describe("a page", () => {
  const page = "docs/protocols/x.md";
  const places = () => new Places(root, new Map([["docs/flp.md", "FLP"]]));
  const html = (text: string): string => rendered(root, page, text, places()).html;

  it("leads to pages of the site, to places on them, and to code that is shown there", () => {
    expect(html("[a](../flp.md#a-b)")).toContain('<a href="../flp.html#a-b">a</a>');
    expect(html("[code](../../src/core/step.ts)")).toContain('href="../source/src/core/step.ts.html"');
    expect(html("[folder](../../src/core/)")).toContain('href="../source/src/core/index.html"');
    expect(html("[home](../../README.md#use)")).toContain('href="../index.html#use"');
    expect(html("[there](https://example.org/a?b&c)")).toContain('href="https://example.org/a?b&amp;c"');
  });

  it("says what a page is instead of what its file is called", () => {
    expect(html("[flp.md](../flp.md), [its proof](../flp.md)")).toContain(
      '<a href="../flp.html">FLP</a>, <a href="../flp.html">its proof</a>',
    );
  });

  it.each(["[a](../nowhere.md)", "![a](../images/nowhere.svg)", "[a](../../../etc)"])("refuses %s", (text) => {
    expect(() => html(text)).toThrow("expected a link to a file of this repository");
  });

  it("has a run where a picture or a comment asks for one, and a link where a place of the laboratory is named", () => {
    const laboratory = "../laboratory/laboratory.html";
    const scenario = "#/run?scenario=bully-a-highest-crashed";
    expect(html("![p](../images/protocols/bully-a-highest-crashed.svg)")).toContain(
      `data-run="${laboratory}?embed${scenario}"`,
    );
    expect(html("![p](../images/flp.svg)")).not.toContain("data-run");
    expect(html(`<!-- laboratory: ${scenario} -->`)).toContain(`<iframe src="${laboratory}?embed${scenario}"`);
    expect(() => html("<!-- laboratory: #/run?scenario=nowhere -->")).toThrow("expected a scenario");
    expect(html("`#/check?protocol=bully`")).toContain(`<a href="${laboratory}#/check?protocol=bully">`);
    expect(html("`coterie check`")).toBe("<p><code>coterie check</code></p>\n");
  });

  it("keeps what looks like markup as it is written", () => {
    expect(html("1 < 2 && `<b>`")).toBe("<p>1 &lt; 2 &amp;&amp; <code>&lt;b&gt;</code></p>\n");
    expect(html('```ts\nconst a = "<b>";\n```')).toContain("&lt;b&gt;");
  });

  it("is divided for search as it is by its headings", () => {
    expect(
      rendered(root, page, "# X\n\nOne.\n\n## Its `cost`\n\n| a | b |\n|---|---|\n| two | *three* |\n", places()),
    ).toMatchObject({
      headings: [
        { depth: 1, id: "x", text: "X" },
        { depth: 2, id: "its-cost", text: "Its cost" },
      ],
      sections: [
        { id: "", heading: "", text: " One." },
        { id: "its-cost", heading: "Its cost", text: " a b two three" },
      ],
    });
  });
});

describe("the crawl", () => {
  it("sees where links lead, and what they do not reach", () => {
    const pages = new Map([
      ["index.html", '<a href="protocols/bully.html#cost">bully</a> <a href="https://example.org">there</a>'],
      [
        "protocols/bully.html",
        '<img src="../images/a.svg"> <iframe src="../laboratory/l.html?embed#/run?a=b&amp;c=d">',
      ],
      ["lost.html", ""],
    ]);
    const links = [...pages].flatMap(([address, html]) => linksOf(address, html));
    expect(links.map(({ to, hash }) => [to, hash])).toEqual([
      ["protocols/bully.html", "cost"],
      ["images/a.svg", ""],
      ["laboratory/l.html", "/run?a=b&c=d"],
    ]);
    expect([...reachedFrom("index.html", pages)]).toEqual(["index.html", "protocols/bully.html"]);
  });
});

describe("the doors", () => {
  const learn = "# Learn\n\n## First\n\n1. [A](a.md): one\n2. [Rows](list.md#one)\n\n- [no place](b.md)\n";
  const list =
    "# List\n\n## One\n\n| a | b |\n|---|---|\n| [`b`](b.md) | [a](a.md) |\n\n## Two\n\n| [a](a.md) |\n|---|\n";
  const texts = new Map(
    Object.entries({
      learn,
      use: "# Use\n\n## List\n\n1. [List](list.md)\n",
      verify: "# Verify\n",
      list,
      a: "# A\n",
      b: "# `B`\n",
    }).map(([name, text]) => [`docs/${name}.md`, text]),
  );

  it("have numbered lists as their reading order; a section stands for what its rows begin with", () => {
    const [first] = doorsOf(texts);
    expect(first?.groups).toEqual([
      {
        title: "First",
        entries: [
          { page: "docs/a.md", section: "", title: "A", within: [] },
          {
            page: "docs/list.md",
            section: "one",
            title: "Rows",
            within: [{ page: "docs/b.md", section: "", title: "B", within: [] }],
          },
        ],
      },
    ]);
  });

  it("have what is deeper behind its page, in the order of its links, and refuse what it does not link to", () => {
    const deeper = new Map([...texts, ["docs/b.md", "# `B`\n\n[two](b/two.md#x) [one](b/one.md) [two](b/two.md)\n"]]);
    deeper.set("docs/b/one.md", "# One\n").set("docs/b/two.md", "# Two\n").set("docs/list/x.md", "# X\n");
    deeper.set("docs/list.md", `${list}\n[x](list/x.md)\n`);
    const [learns, uses] = doorsOf(deeper).map((door) => readingOrder(door).map(({ page }) => page));
    expect(learns).toEqual(["docs/a.md", "docs/b.md", "docs/b/two.md", "docs/b/one.md"]);
    expect(uses).toEqual(["docs/list.md", "docs/list/x.md"]);
    deeper.set("docs/a/lost.md", "# Lost\n");
    expect(() => doorsOf(deeper)).toThrow("docs/a.md: expected a link to a/lost.md");
  });

  it("refuse a page that stands in none, and one that stands in two", () => {
    expect(() => doorsOf(new Map([...texts, ["docs/c.md", "# C\n"]]))).toThrow("missed docs/c.md");
    const twice = new Map([...texts, ["docs/verify.md", "# Verify\n\n## Again\n\n1. [A](a.md)\n"]]);
    expect(() => doorsOf(twice)).toThrow("docs/a.md twice");
    const nowhere = new Map([...texts, ["docs/verify.md", "# Verify\n\n## Lost\n\n1. [C](c.md)\n"]]);
    expect(() => doorsOf(nowhere)).toThrow("got c.md");
  });
});
