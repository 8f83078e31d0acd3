/** Counts what a page draws: the time between its frames, long tasks, the main thread's work, and elements. */
import type { Browser, Page } from "playwright-core";
import { median } from "../figures.ts";
import { quantile } from "../services/figures.ts";
import { frameWork, TRACED } from "./frame-work.ts";

/** What one measurement comes to; times in milliseconds. */
export interface Frames {
  /** Frames a second, from the median of the intervals between frames. */
  readonly perSecond: number;
  readonly worstMs: number;
  /** Frames that came later than three times the median of 60 frames a second. */
  readonly late: number;
  readonly longTasks: number;
  readonly longestTaskMs: number;
  /** The main thread's work for one frame, the median: scripts, styles, layout and paint together, on the processor's clock. */
  readonly workMs: number;
  /** Of a hundred frames five take more. */
  readonly p95WorkMs: number;
  readonly elements: number;
}

const LATE_MS = 50;

/** Runs in the page, hence as text: the benchmark itself is compiled without the types of a browser. */
const COUNTING = `
  window.frameCount = { intervals: [], tasks: [] };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.frameCount.tasks.push(duration);
  }).observe({ type: "longtask" });
  let before = null;
  requestAnimationFrame(function next(now) {
    if (before !== null) window.frameCount.intervals.push(now - before);
    before = now;
    requestAnimationFrame(next);
  });`;

interface Counted {
  readonly intervals: readonly number[];
  readonly tasks: readonly number[];
  readonly elements: number;
}

export class FrameCounter {
  readonly #browser: Browser;
  readonly #page: Page;
  private constructor(browser: Browser, page: Page) {
    this.#browser = browser;
    this.#page = page;
  }

  static async of(browser: Browser, page: Page): Promise<FrameCounter> {
    await page.evaluate(COUNTING);
    return new FrameCounter(browser, page);
  }

  /** Counts while `during` lasts. */
  async while(during: () => Promise<unknown>): Promise<Frames> {
    await this.#browser.startTracing(this.#page, { categories: [...TRACED] });
    await this.#take();
    await during();
    const { intervals, tasks, elements } = await this.#take();
    const work = frameWork(JSON.parse((await this.#browser.stopTracing()).toString("utf8")));
    const drawn = intervals.length === 0 ? [Number.POSITIVE_INFINITY] : intervals;
    return {
      perSecond: 1_000 / median(drawn),
      worstMs: Math.max(...drawn),
      late: intervals.filter((ms) => ms > LATE_MS).length,
      longTasks: tasks.length,
      longestTaskMs: Math.max(0, ...tasks),
      workMs: quantile(work, 0.5),
      p95WorkMs: quantile(work, 0.95),
      elements,
    };
  }

  #take(): Promise<Counted> {
    return this.#page.evaluate(`(() => {
      const { intervals, tasks } = window.frameCount;
      const elements = document.querySelectorAll("*").length;
      return { intervals: intervals.splice(0), tasks: tasks.splice(0), elements };
    })()`);
  }
}
