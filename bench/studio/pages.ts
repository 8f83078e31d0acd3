/**
 * The built pages in Chromium, which get their data without a server: the time between their frames, and the main
 * thread's work per frame.
 */
import { existsSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { quantile } from "../results.ts";
import { checkoutFile } from "../workers.ts";

const BUILT = checkoutFile("dist/studio");
const ORIGIN = "https://studio.test";

/** The intervals between frames, in milliseconds. */
export interface Frames {
  readonly median: number;
  readonly p95: number;
  readonly worst: number;
  /**
   * The main thread's work per frame, measured in thread time, which does not advance while other programs use the CPU.
   */
  readonly workP95: number;
  readonly workWorst: number;
}

/** Runs in the page. It is a string because this file is compiled without browser types. */
const COUNTING = `
  window.intervals = [];
  let before = null;
  requestAnimationFrame(function next(now) {
    if (before !== null) window.intervals.push(now - before);
    before = now;
    requestAnimationFrame(next);
  });`;

/** Replaces the server's event stream. */
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
      contentType: TYPES[pathname.split(".").at(-1) ?? ""] ?? "text/html",
    });
  });
  await page.goto(`${ORIGIN}${path}`);
  return page;
}

const TYPES: Readonly<Record<string, string>> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

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
  if (intervals.length === 0) throw new Error("expected frames, got none");
  return {
    median: quantile(intervals, 0.5),
    p95: quantile(intervals, 0.95),
    worst: Math.max(...intervals),
    workP95: quantile(work, 0.95),
    workWorst: Math.max(...work),
  };
}

/** The trace categories that are needed. */
const TRACED = ["toplevel", "devtools.timeline", "__metadata"] as const;

/** An event in Chromium's trace. Times are in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** Thread time, which does not advance while other programs use the CPU. */
  readonly tdur?: number;
}

/** A task on the main thread. */
interface Task {
  readonly to: number;
  readonly workMs: number;
}

/**
 * Returns the work per frame in milliseconds: the task that runs the frame's animation callbacks, and all tasks since
 * the previous frame.
 */
function frameWork({ traceEvents }: { readonly traceEvents: readonly TraceEvent[] }): number[] {
  const thread = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;
  const frames = traceEvents.filter(({ name }) => name === "FireAnimationFrame");
  const drawing = busiest(frames.map(thread));
  const begins = frames.filter((event) => thread(event) === drawing).map(({ ts }) => ts);
  const tasks = tasksOf(traceEvents.filter((event) => thread(event) === drawing));
  const work: number[] = [];
  let next = 0;
  let since = 0;
  for (const { to, workMs } of tasks) {
    const before = next;
    while ((begins[next] ?? Number.POSITIVE_INFINITY) < to) next += 1;
    since += workMs;
    if (next === before) continue;
    work.push(since);
    since = 0;
  }
  return work;
}

/** Returns the top-level tasks in chronological order. */
function tasksOf(events: readonly TraceEvent[]): Task[] {
  const tasks: Task[] = [];
  const runs = events.filter(({ name, ph }) => ph === "X" && name.endsWith("RunTask")).sort((a, b) => a.ts - b.ts);
  for (const { ts, dur = 0, tdur = 0 } of runs)
    if (ts >= (tasks.at(-1)?.to ?? 0)) tasks.push({ to: ts + dur, workMs: tdur / 1_000 });
  return tasks;
}

/** Returns the most frequent name. */
function busiest(names: readonly string[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
