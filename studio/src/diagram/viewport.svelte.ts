/** The current window of the diagram: following the present, paused, or moving to another window. */
import type { Chronicle } from "../history/chronicle.ts";
import { EVENT, EventAxis } from "./event-axis.ts";
import { followingWindow, framing, LONGEST_MS, PRESENT, panned, type Window, within, zoomed } from "./window.ts";

/** The shortest span that can follow the present. At a closer zoom, the view would only flicker. */
const SHORTEST_FOLLOWED_MS = 1_000;

/** The number of events shown when the page is opened. */
const FIRST_EVENTS = 60;

/** A window on an axis that shows events or time. Parameters are moments. */
export class Viewport {
  /** The axis of events. Null if the axis is time itself. */
  axis = $state.raw<EventAxis | null>(new EventAxis());
  following = $state(true);
  /** Whether to show vector clocks while the view is paused. */
  showsClocks = $state(false);
  /** The span of the window on the axis. */
  spanMs = $state((FIRST_EVENTS * EVENT) / PRESENT);
  /** The moment that short distances are measured from: the beginning of the framed range. */
  origin = $state<number | null>(null);

  /** The position where the view was paused. Not used while following the present. */
  #pausedFrom = 0;

  placeOf(at: number): number {
    return this.axis === null ? at : this.axis.placeOf(at);
  }

  timeOf(place: number): number {
    return this.axis === null ? place : this.axis.timeOf(place);
  }

  /** Switches between the event axis and the time axis, with the present at the edge. */
  toggleAxis(chronicle: Chronicle | null): void {
    this.axis = this.axis === null ? new EventAxis() : null;
    if (chronicle !== null) this.axis?.update(chronicle);
    this.following = true;
    this.origin = null;
    this.spanMs = this.axis === null ? LONGEST_MS : (FIRST_EVENTS * EVENT) / PRESENT;
  }

  /** Returns the window on the axis at the moment `now` of the server's clock. */
  window(now: number): Window {
    return this.following
      ? followingWindow(this.placeOf(now), this.spanMs)
      : { from: this.#pausedFrom, spanMs: this.spanMs };
  }

  /** The earliest moment that must be kept. Infinity while following the present. */
  get studiedFrom(): number {
    return this.following ? Infinity : this.timeOf(this.#pausedFrom);
  }

  follow(spanMs: number): void {
    this.following = true;
    this.spanMs = spanMs;
    this.origin = null;
  }

  /** Follows the present again, keeping the current zoom unless it is too close. */
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

  /** Shows the range between two moments, with a margin on both sides. */
  frame(from: number, to: number): void {
    this.#rest(framing(this.placeOf(from), this.placeOf(to)));
    this.origin = from;
  }

  /** Zooms. While following the present, the present stays at the edge. */
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
