/** Which window of time the diagram shows now: following the present, held still, or on its way to another window. */
import type { Chronicle } from "../history/chronicle.ts";
import { EVENT, EventAxis } from "./event-axis.ts";
import { followingWindow, framing, LONGEST_MS, PRESENT, panned, type Window, within, zoomed } from "./window.ts";

/** Following the present more closely than this shows nothing but flicker. */
const SHORTEST_FOLLOWED_MS = 1_000;

/** So many events are seen of a page that was just opened. */
const FIRST_EVENTS = 60;

/** Its windows lie on an axis: that of events, or time. What it is told are moments. */
export class Viewport {
  /** Null while the axis is time itself. */
  axis = $state.raw<EventAxis | null>(new EventAxis());
  following = $state(true);
  /** Whether vector clocks are shown, while the view is paused. */
  showsClocks = $state(false);
  /** On the axis. */
  spanMs = $state((FIRST_EVENTS * EVENT) / PRESENT);
  /** What short distances are counted from: the beginning of what was framed. */
  origin = $state<number | null>(null);

  /** Where it is held; of no meaning while it follows. */
  #pausedFrom = 0;

  /** Where a moment stands on the axis. */
  placeOf(at: number): number {
    return this.axis === null ? at : this.axis.placeOf(at);
  }

  /** The moment at a place of the axis. */
  timeOf(place: number): number {
    return this.axis === null ? place : this.axis.timeOf(place);
  }

  /** Events or time, the present at its edge. */
  toggleAxis(chronicle: Chronicle | null): void {
    this.axis = this.axis === null ? new EventAxis() : null;
    if (chronicle !== null) this.axis?.update(chronicle);
    this.following = true;
    this.origin = null;
    this.spanMs = this.axis === null ? LONGEST_MS : (FIRST_EVENTS * EVENT) / PRESENT;
  }

  /** The window on the axis at the moment `now` of the server's clock. */
  window(now: number): Window {
    return this.following
      ? followingWindow(this.placeOf(now), this.spanMs)
      : { from: this.#pausedFrom, spanMs: this.spanMs };
  }

  /** The earliest moment that must be kept; none while it follows. */
  get studiedFrom(): number {
    return this.following ? Infinity : this.timeOf(this.#pausedFrom);
  }

  follow(spanMs: number): void {
    this.following = true;
    this.spanMs = spanMs;
    this.origin = null;
  }

  /** Back to the present, with the zoom that there is unless it is too close for that. */
  followAgain(): void {
    this.follow(this.axis === null && this.spanMs < SHORTEST_FOLLOWED_MS ? LONGEST_MS : this.spanMs);
  }

  togglePause(now: number): void {
    if (this.following) this.pause(now);
    else this.followAgain();
  }

  pause(now: number): void {
    this.#rest(this.window(now));
  }

  /** Shows what lies between two moments, with a margin. */
  frame(from: number, to: number): void {
    this.#rest(framing(this.placeOf(from), this.placeOf(to)));
    this.origin = from;
  }

  /** Following goes on while zooming, at the present edge. */
  zoom(factor: number, at: number | null, begin: number, now: number): void {
    const window = this.window(now);
    if (this.following) this.spanMs = zoomed(window, this.placeOf(now), factor).spanMs;
    else
      this.#rest(
        within(zoomed(window, at ?? window.from + window.spanMs / 2, factor), this.placeOf(begin), this.placeOf(now)),
      );
  }

  pan(byMs: number, begin: number, now: number): void {
    const window = this.window(now);
    this.#rest(within(panned(window, byMs), this.placeOf(begin), this.placeOf(now)));
  }

  #rest(window: Window): void {
    this.following = false;
    this.spanMs = window.spanMs;
    this.#pausedFrom = window.from;
  }
}
