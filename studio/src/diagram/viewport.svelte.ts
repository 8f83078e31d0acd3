/** Which window of time the diagram shows now: following the present, held still, or on its way to another window. */
import { between, followingWindow, framing, LONGEST_MS, panned, type Window, within, zoomed } from "./window.ts";

const TRAVEL_MS = 700;
/** Following the present more closely than this shows nothing but flicker. */
const SHORTEST_FOLLOWED_MS = 1_000;

interface Travel {
  readonly start: Window;
  /** Null where it ends at the present, which moves on meanwhile. */
  readonly end: Window | null;
  readonly startedAt: number;
}

export class Viewport {
  following = $state(true);
  /** Whether vector clocks are shown, while the view is paused. */
  showsClocks = $state(false);
  spanMs = $state(LONGEST_MS);
  /** What short distances are counted from: the beginning of what was framed. */
  origin = $state<number | null>(null);

  /** Where it is held; of no meaning while it follows. */
  #pausedFrom = 0;
  #travel: Travel | null = null;

  /** The window at the moment `now`, both in milliseconds of the server's clock. */
  window(now: number): Window {
    const goal = this.#goal(now);
    if (this.#travel === null) return goal;
    const { start, end, startedAt } = this.#travel;
    const progress = Math.min((performance.now() - startedAt) / TRAVEL_MS, 1);
    if (progress === 1) this.#travel = null;
    return between(start, end ?? goal, eased(progress));
  }

  get travelling(): boolean {
    return this.#travel !== null;
  }

  /** The earliest moment that must be kept; none while it follows. */
  get studiedFrom(): number {
    return this.following ? Infinity : this.#pausedFrom;
  }

  follow(spanMs: number, now: number): void {
    this.#depart(now, null);
    this.following = true;
    this.spanMs = spanMs;
    this.origin = null;
  }

  /** Back to the present, with the zoom that there is unless it is too close for that. */
  followAgain(now: number): void {
    this.follow(this.spanMs < SHORTEST_FOLLOWED_MS ? LONGEST_MS : this.spanMs, now);
  }

  togglePause(now: number): void {
    if (this.following) this.pause(now);
    else this.followAgain(now);
  }

  pause(now: number): void {
    const window = this.window(now);
    this.#travel = null;
    this.#rest(window);
  }

  /** Shows what lies between two moments, with a margin. */
  frame(from: number, to: number, now: number): void {
    const goal = framing(from, to);
    this.#depart(now, goal);
    this.#rest(goal);
    this.origin = from;
  }

  /** Following goes on while zooming, at the present edge. */
  zoom(factor: number, at: number | null, begin: number, now: number): void {
    const window = this.window(now);
    this.#travel = null;
    if (this.following) this.spanMs = zoomed(window, now, factor).spanMs;
    else this.#rest(within(zoomed(window, at ?? window.from + window.spanMs / 2, factor), begin, now));
  }

  pan(byMs: number, begin: number, now: number): void {
    const window = this.window(now);
    this.#travel = null;
    this.#rest(within(panned(window, byMs), begin, now));
  }

  #goal(now: number): Window {
    return this.following ? followingWindow(now, this.spanMs) : { from: this.#pausedFrom, spanMs: this.spanMs };
  }

  #rest(window: Window): void {
    this.following = false;
    this.spanMs = window.spanMs;
    this.#pausedFrom = window.from;
  }

  #depart(now: number, end: Window | null): void {
    const start = this.window(now);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#travel = still ? null : { start, end, startedAt: performance.now() };
  }
}

function eased(progress: number): number {
  return progress < 0.5 ? 4 * progress ** 3 : 1 - (-2 * progress + 2) ** 3 / 2;
}
