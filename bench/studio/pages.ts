/** The built pages in Chromium, fed without a server, and how their frames follow each other. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { quantile } from "../results.ts";
import { frameWork, TRACED } from "./frame-work.ts";

/** In the source tree as in `build/`, where this is compiled to. */
const root = import.meta.url.endsWith(".ts") ? "../../" : "../../../";
const BUILT = fileURLToPath(new URL(`${root}dist/studio`, import.meta.url));
/** Pages that nobody else can look into may ask how much memory they take, with their workers. */
const ORIGIN = "https://studio.test";
const ALONE = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
/** For Chromium, so that it answers at once. */
export const MEASURES_MEMORY = "--enable-blink-features=ForceEagerMeasureMemory";

/** Intervals between frames, in milliseconds. */
export interface Frames {
  readonly median: number;
  readonly p95: number;
  readonly worst: number;
  /** What the main thread worked for a frame, on its own clock, which stands still while other programs have the processor. */
  readonly workP95: number;
  readonly workWorst: number;
}

/** Runs in the page, hence as text: this is compiled without the types of a browser. */
const COUNTING = `
  window.intervals = [];
  let before = null;
  requestAnimationFrame(function next(now) {
    if (before !== null) window.intervals.push(now - before);
    before = now;
    requestAnimationFrame(next);
  });`;

/** In place of the server's stream. */
const FEED = `window.EventSource = class {
  constructor() { window.feed = (event) => this.onmessage({ data: JSON.stringify(event) }); }
  close() {}
};`;

export async function openPage(browser: Browser, path: string): Promise<Page> {
  if (!existsSync(BUILT)) throw new Error(`expected the built pages at ${BUILT}: run npm run build`);
  const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
  page.setDefaultTimeout(120_000);
  await page.addInitScript(FEED);
  await page.route("**/*", (route) => {
    const { pathname } = new URL(route.request().url());
    return route.fulfill({
      path: `${BUILT}${pathname === "/" ? "/index.html" : pathname}`,
      headers: headersOf(pathname),
    });
  });
  await page.goto(`${ORIGIN}${path}`);
  return page;
}

const TYPES: Readonly<Record<string, string>> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

const headersOf = (pathname: string): Record<string, string> => ({
  ...ALONE,
  "content-type": TYPES[pathname.split(".").at(-1) ?? ""] ?? "text/html",
});

/** Of the page and its workers, in bytes. */
export const memoryOf = (page: Page): Promise<number> =>
  page.evaluate<number>("performance.measureUserAgentSpecificMemory().then(({ bytes }) => bytes)");

export async function firstPaint(page: Page): Promise<number> {
  await page.waitForFunction('performance.getEntriesByName("first-contentful-paint").length > 0');
  return page.evaluate<number>('performance.getEntriesByName("first-contentful-paint")[0].startTime');
}

export async function framesWhile(page: Page, during: () => Promise<unknown>): Promise<Frames> {
  const browser = page.context().browser();
  if (browser === null) throw new Error("expected a page of a browser that was launched");
  await browser.startTracing(page, { categories: [...TRACED] });
  await page.evaluate(COUNTING);
  await during();
  const intervals = await page.evaluate<number[]>("window.intervals");
  const work = frameWork(JSON.parse((await browser.stopTracing()).toString("utf8")));
  if (intervals.length === 0) throw new Error("expected frames, got none: the page stood still");
  return {
    median: quantile(intervals, 0.5),
    p95: quantile(intervals, 0.95),
    worst: Math.max(...intervals),
    workP95: quantile(work, 0.95),
    workWorst: Math.max(...work),
  };
}

/** Bytes after gzip of what a page names, and of all else that it may load later. */
export function sizes(name: string): {
  readonly first: number;
  readonly later: readonly (readonly [string, number])[];
} {
  const page = readFileSync(`${BUILT}/${name}`, "utf8");
  const size = (file: string): number => gzipSync(readFileSync(`${BUILT}/assets/${file}`)).length;
  const named = [...page.matchAll(/(?:src|href)="\.\/assets\/([^"]+)"/g)].map(([, file]) => file as string);
  const others = readdirSync(`${BUILT}/assets`).filter((file) => file.endsWith(".js") && !named.includes(file));
  return { first: named.reduce((sum, file) => sum + size(file), 0), later: others.map((file) => [file, size(file)]) };
}
