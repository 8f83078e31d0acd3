/** Counts what a page draws: the time between its frames, long tasks, the main thread's work, and elements. */
import type { CDPSession, Page } from "playwright-core";
import { median } from "../figures.ts";

/** What one measurement comes to; times in milliseconds. */
export interface Frames {
  /** Frames a second, from the median of the intervals between frames. */
  readonly perSecond: number;
  readonly worstMs: number;
  /** Frames that came later than three times the median of 60 frames a second. */
  readonly late: number;
  readonly longTasks: number;
  readonly longestTaskMs: number;
  /** The main thread's work for one frame: scripts, styles, layout and paint together. */
  readonly workMs: number;
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
  private constructor(
    private readonly page: Page,
    private readonly session: CDPSession,
  ) {}

  static async of(page: Page): Promise<FrameCounter> {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    await page.evaluate(COUNTING);
    return new FrameCounter(page, session);
  }

  /** Counts while `during` lasts. */
  async while(during: () => Promise<unknown>): Promise<Frames> {
    await this.take();
    const before = await this.workedMs();
    await during();
    const worked = (await this.workedMs()) - before;
    const { intervals, tasks, elements } = await this.take();
    const drawn = intervals.length === 0 ? [Number.POSITIVE_INFINITY] : intervals;
    return {
      perSecond: 1_000 / median(drawn),
      worstMs: Math.max(...drawn),
      late: intervals.filter((ms) => ms > LATE_MS).length,
      longTasks: tasks.length,
      longestTaskMs: Math.max(0, ...tasks),
      workMs: worked / Math.max(intervals.length, 1),
      elements,
    };
  }

  private take(): Promise<Counted> {
    return this.page.evaluate(`(() => {
      const { intervals, tasks } = window.frameCount;
      const elements = document.querySelectorAll("*").length;
      return { intervals: intervals.splice(0), tasks: tasks.splice(0), elements };
    })()`);
  }

  private async workedMs(): Promise<number> {
    const { metrics } = await this.session.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1_000;
  }
}
