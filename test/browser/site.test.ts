/**
 * The documentation site as `npm run docs` builds it, from a static host under a path of its own.
 *
 * @module-tag long
 */

import { execFile } from "node:child_process";
import type { Server } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { complaintsOfAxe, launch, noBrowser, openPage } from "./chromium.ts";
import { staticHost } from "./laboratory-under-test.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe.skipIf(noBrowser !== null)("the documentation site in a browser", () => {
  let browser: Browser;
  let context: BrowserContext;
  let host: Server;
  let front: string;
  const complaints: string[] = [];
  const open = (page: string): Promise<Page> => openPage(context, new URL(page, front).href, complaints);

  beforeAll(async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", "site/build.ts"], { cwd: root });
    expect(stdout).toContain("the site is in build/site");
    browser = await launch();
    ({ server: host, url: front } = await staticHost(`${root}build/site`, "index.html"));
  });
  afterAll(async () => {
    await browser?.close();
    host?.close();
  });
  beforeEach(async () => {
    complaints.length = 0;
    context = await browser.newContext({ viewport: { width: 1_280, height: 900 } });
  });
  afterEach(async () => {
    await context?.close();
    expect(complaints).toEqual([]);
  });

  test("a search by keyboard leads to a page, and its picture becomes the run that it shows", async () => {
    const page = await open("verify.html");
    await page.waitForSelector("[data-search]:not([hidden])");
    await page.keyboard.press("/");
    await page.keyboard.type("ricart agrawala");
    await page.waitForSelector('.results li:first-child a[href$="ricart-agrawala.html"]');
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/some\/where\/protocols\/ricart-agrawala\.html$/);
    expect(await page.locator(".way [aria-current=page]").innerText()).toBe("Ricart–Agrawala");

    await page.getByRole("button", { name: "Run it here" }).first().click();
    const run = page.frameLocator("figure.run iframe");
    await run.getByTestId("headline").waitFor();
    await run.locator("body").press("End");
    // Both have been in: nobody is inside at the end of the run.
    await run.getByText("Nobody is inside", { exact: false }).waitFor();
    // As high as what is in it: nothing scrolls inside the page.
    await page.waitForFunction(() => {
      const inner = document.querySelector("iframe")?.contentDocument?.documentElement;
      return inner !== undefined && inner.scrollHeight <= inner.clientHeight + 1;
    });
    await page.getByRole("button", { name: "Show the picture" }).click();
    expect(await page.locator("figure.run iframe").count()).toBe(0);
  });

  test("the front page runs the laboratory, and its theme reaches into it", async () => {
    const page = await open("index.html");
    const run = page.frameLocator("iframe");
    await page.locator("iframe").scrollIntoViewIfNeeded();
    await run.getByTestId("headline").waitFor();
    await page.getByLabel("Theme").selectOption("dark");
    expect(await run.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.reload();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  });

  test("tours are walked where they are told of", async () => {
    const page = await open("tours.html");
    const tours = page.frameLocator("iframe");
    await tours.locator('[data-tour="silence"]').click();
    await tours.getByText("Node 7, the highest, has crashed", { exact: false }).waitFor();
  });

  const pages = [
    ["index.html", "iframe"],
    ["learn.html", ".way"],
    ["protocols/raft.html", "[data-start]:not([hidden])"],
    ["glossary.html", "table"],
    ["assumptions.html", "table"],
    ["source/src/core/step.ts.html", ".hljs-keyword"],
  ] as const;
  const cases = pages.flatMap(([path, sign]) => (["light", "dark"] as const).map((scheme) => ({ path, sign, scheme })));

  test.each(cases)("everyone can use $path in $scheme", async ({ path, sign, scheme }) => {
    const page = await open(path);
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForSelector(sign, { state: "attached" });
    expect(await complaintsOfAxe(page, { iframes: false })).toEqual([]);
  });

  test.each(["light", "dark"] as const)("everyone can search in %s, and on a phone", async (scheme) => {
    const page = await open("use.html");
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("button", { name: "Search" }).click();
    await page.keyboard.type("fencing token");
    await page.waitForSelector(".results mark");
    expect(await complaintsOfAxe(page, { iframes: false })).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await page.evaluate<number>(overflow)).toBe(0);
  });
});
