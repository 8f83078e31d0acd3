/** The current window of the diagram: following the present, held, or moving to another window. */
import type { Chronicle } from "../history/chronicle.ts";
import { EVENT, EventAxis } from "./event-axis.ts";
import { followingWindow, framing, LONGEST_MS, PRESENT, panned, type Window, within, zoomed } from "./window.ts";

/** Following the present at a closer zoom shows nothing but flicker. */
const SHORTEST_FOLLOWED_MS = 1_000;

/** A newly opened page shows this many events. */
const FIRST_EVENTS = 60;

/** A window on an axis of events or of time. Its parameters are moments. */
export class Viewport {
  /** Null while the axis is time itself. */
  axis = $state.raw<EventAxis | null>(new EventAxis());
  following = $state(true);
  /** Whether vector clocks are shown while the view is paused. */
  showsClocks = $state(false);
  /** On the axis. */
  spanMs = $state((FIRST_EVENTS * EVENT) / PRESENT);
  /** The moment that short distances are counted from: the beginning of the framed range. */
  origin = $state<number | null>(null);

  /** The held position; unused while following. */
  #pausedFrom = 0;

  /** The position of a moment on the axis. */
  placeOf(at: number): number {
    return this.axis === null ? at : this.axis.placeOf(at);
  }

  /** The moment at a position of the axis. */
  timeOf(place: number): number {
    return this.axis === null ? place : this.axis.timeOf(place);
  }

  /** Switches between events and time, with the present at the edge. */
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

  /** The earliest moment that must be kept; Infinity while following. */
  get studiedFrom(): number {
    return this.following ? Infinity : this.timeOf(this.#pausedFrom);
  }

  follow(spanMs: number): void {
    this.following = true;
    this.spanMs = spanMs;
    this.origin = null;
  }

  /** Follows the present again, with the current zoom unless it is too close. */
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

  /** Shows the range between two moments, with a margin. */
  frame(from: number, to: number): void {
    this.#rest(framing(this.placeOf(from), this.placeOf(to)));
    this.origin = from;
  }

  /** Following continues while zooming, at the edge of the present. */
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
