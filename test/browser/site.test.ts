/**
 * Checks the documentation site as `npm run docs` builds it, served below a path.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Server } from "node:http";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestedLaboratory } from "../../studio/src/laboratory/engine/laboratory-under-test.ts";
import { placeOf } from "../../studio/src/laboratory/engine/recipe.ts";
import { tours } from "../../studio/src/laboratory/tours/tours.ts";
import { complaintsOfAxe, launch, noBrowser, openPage } from "./chromium.ts";
import { staticHost } from "./laboratory-under-test.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const site = join(root, "build/site");
const BASE = "/some/where/";

/** Runs `npm run docs` without the laboratory, which the tests have already built. */
async function build(): Promise<string> {
  const env = { ...process.env, COTERIE_BASE: BASE };
  const run = promisify(execFile);
  if (!existsSync(join(root, "site/node_modules"))) await run("npm", ["ci", "--prefix", "site"], { cwd: root, env });
  const { stdout } = await run(process.execPath, ["--import", "tsx", "site/build.ts"], { cwd: root, env });
  return stdout;
}

/** Opens the search and types words. A page ignores keys until its scripts have run. */
async function search(page: Page, words: string): Promise<void> {
  const box = page.getByPlaceholder("Search");
  const isOpen = async (): Promise<boolean> => {
    if (!(await box.isVisible())) await page.keyboard.press("/");
    return box.isVisible();
  };
  await expect.poll(isOpen).toBe(true);
  await box.fill(words);
}

interface Link {
  readonly from: string;
  readonly href: string;
  /** The linked file, relative to the root of the site. */
  readonly to: string;
  readonly hash: string;
}

function linksOf(from: string, html: string): Link[] {
  return [...html.matchAll(/\s(?:href|src)="([^"]*)"/g)].flatMap(([, found = ""]) => {
    const href = found.replaceAll("&amp;", "&");
    if (/^[a-z]+:/.test(href)) return [];
    const [, path = "", hash = ""] = /^([^?#]*)(?:\?[^#]*)?(?:#(.*))?$/s.exec(href) ?? [];
    const absolute =
      path === "" ? BASE + from : posix.resolve(BASE + posix.dirname(from), path) + (path.endsWith("/") ? "/" : "");
    const file = absolute.slice(BASE.length);
    return [
      {
        from,
        href,
        to: file === "" || file.endsWith("/") ? `${file}index.html` : file,
        hash: decodeURIComponent(hash),
      },
    ];
  });
}

describe.skipIf(noBrowser !== null)("the documentation site", () => {
  let browser: Browser;
  let context: BrowserContext;
  let host: Server;
  let front: string;
  let pages: ReadonlyMap<string, string>;
  const complaints: string[] = [];
  const open = (page: string): Promise<Page> => openPage(context, new URL(page, front).href, complaints);

  beforeAll(async () => {
    expect(await build()).toContain("the site is in build/site");
    const files = readdirSync(site, { recursive: true, encoding: "utf8" });
    const html = files.filter((file) => file.endsWith(".html") && !file.startsWith("laboratory"));
    pages = new Map(html.map((file) => [file, readFileSync(join(site, file), "utf8")]));
    browser = await launch();
    ({ server: host, url: front } = await staticHost(site, "index.html"));
  });
  afterAll(async () => {
    await browser?.close();
    host?.close();
  });
  beforeEach(async () => {
    complaints.length = 0;
    context = await browser.newContext({ viewport: { width: 1_440, height: 900 } });
  });
  afterEach(async () => {
    await context?.close();
    expect(complaints).toEqual([]);
  });

  test("has no broken link, heading or picture", () => {
    const ids = new Map(
      [...pages].map(([file, html]) => [file, new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id))]),
    );
    const links = [...pages].flatMap(([file, html]) => linksOf(file, html));
    expect(links.length).toBeGreaterThan(1_000);
    const broken = links.filter(({ to, hash }) => {
      if (!existsSync(join(site, to))) return true;
      return hash !== "" && pages.has(to) && !ids.get(to)?.has(hash);
    });
    expect(broken.map(({ from, href }) => `${from}: ${href}`)).toEqual([]);
  });

  test("names scenarios and tours of the laboratory that exist", async () => {
    const places = [...pages].flatMap(([, html]) =>
      [...html.matchAll(/laboratory\.html[^"#]*(#\/[^"]*)"/g)].map(([, place = ""]) => place.replaceAll("&amp;", "&")),
    );
    expect(places.length).toBeGreaterThan(50);
    const names = new Set(tours.map(({ name }) => name));
    const laboratory = new TestedLaboratory();
    for (const place of new Set(places)) {
      const { words } = placeOf(place);
      if (words.tour !== undefined) expect.soft(names.has(words.tour), place).toBe(true);
      if (words.scenario === undefined) continue;
      expect.soft((await laboratory.run(words)).steps.length, place).toBeGreaterThan(1);
    }
  });

  test("the search finds a page by a synonym, and its picture becomes a live run", async () => {
    const page = await open("verify/index.html");
    await search(page, "ricart agrawala");
    await page.locator('.results a[href*="ricart-agrawala"]').first().click();
    await page.waitForURL(/learn\/protocols\/ricart-agrawala/);
    await page.getByRole("button", { name: "Run it here" }).first().click();
    const run = page.frameLocator(".live-run iframe");
    await run.getByTestId("headline").waitFor();
    // The frame is as high as its content, so nothing scrolls inside the page.
    await page.waitForFunction(`(() => {
      const inner = document.querySelector("iframe")?.contentDocument?.documentElement;
      return inner !== undefined && inner.scrollHeight <= inner.clientHeight + 1;
    })()`);
    await page.getByRole("button", { name: "Show the picture" }).click();
    expect(await page.locator(".live-run iframe").count()).toBe(0);
    await search(page, "split brain");
    await page.locator(".results a").first().waitFor();
  });

  test("the front page runs the laboratory in the theme of the page", async () => {
    const page = await open("index.html");
    const run = page.frameLocator("iframe");
    await page.locator("iframe").scrollIntoViewIfNeeded();
    await run.getByTestId("headline").waitFor();
    await page.getByRole("switch").first().click();
    const dark = await page.evaluate<boolean>(`document.documentElement.classList.contains("dark")`);
    await expect.poll(() => run.locator("html").getAttribute("data-theme")).toBe(dark ? "dark" : "light");
  });

  test("prints first paint and bytes", async () => {
    for (const path of ["index.html", "guide/mutex.html", "learn/protocols/raft.html"]) {
      const page = await open(path);
      await page.waitForSelector("#VPContent");
      const [paint, bytes] = await page.evaluate<[number, number]>(`[
        performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
        performance.getEntries().reduce((sum, { encodedBodySize = 0 }) => sum + encodedBodySize, 0),
      ]`);
      expect(bytes).toBeGreaterThan(10_000);
      process.stdout.write(`${path}: first paint after ${Math.round(paint)} ms, ${Math.round(bytes / 1_000)} KB\n`);
      await page.close();
    }
  });

  const looked = ["index.html", "guide/mutex.html", "learn/protocols/raft.html", "reference/errors.html", "404.html"];
  const cases = looked.flatMap((path) => (["light", "dark"] as const).map((scheme) => ({ path, scheme })));

  test.each(cases)(
    "axe finds nothing on $path in $scheme, and on a phone nothing is wider than the screen",
    async ({ path, scheme }) => {
      const page = await open(path);
      await page.emulateMedia({ colorScheme: scheme });
      await page.waitForSelector("#app main, #VPContent");
      expect(await complaintsOfAxe(page, { iframes: false })).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      await expect.poll(() => page.evaluate<number>(overflow)).toBe(0);
    },
  );
});
