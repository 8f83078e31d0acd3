/**
 * An axis of events: busy times get space, and silence gets almost none. Moments keep their order, and positions
 * between two events are interpolated by time. The axis grows at its end as events arrive.
 */
import type { Chronicle } from "../history/chronicle.ts";
import { timeOfDay } from "./axis.ts";
import { firstAfter } from "./levels.ts";

/** The distance between consecutive events, in axis units. */
export const EVENT = 100;
/** Events less than this far apart are drawn closer together. */
const CLOSE_MS = 0.3;
const LEAST = 4;
/** How fast a gap grows with the logarithm of its duration. Gaps longer than `BREAK_MS` are shown as breaks. */
const GROWTH = 40;
const LONGEST = 300;
const BREAK_MS = 5_000;

export class EventAxis {
  #times: number[] = [];
  #places: number[] = [];
  /** `placeOf` as a bound function, whose identity never changes. */
  readonly place = (at: number): number => this.placeOf(at);
  ticks: readonly { readonly at: number; readonly text: string }[] = [];
  breaks: readonly number[] = [];

  /** Updates the axis from the known entries. Existing positions stay the same, unless an older entry arrives late. */
  update({ messages, marks, lives }: Chronicle): void {
    const moments: number[] = marks.map(({ at }) => at);
    for (const { sentAt, receivedAt, loss } of messages)
      for (const at of [sentAt, receivedAt, loss?.at]) if (typeof at === "number") moments.push(at);
    for (const life of lives.values())
      for (const { from } of life.stretches()) if (Number.isFinite(from)) moments.push(from);
    const times = [...new Set(moments)].sort((a, b) => a - b);
    const places: number[] = [];
    const breaks: number[] = [];
    let place = times.length === 0 ? 0 : this.placeOf(times[0] as number);
    for (const [index, at] of times.entries()) {
      const gap = index === 0 ? 0 : at - (times[index - 1] as number);
      place += index === 0 ? 0 : roomOf(gap);
      if (gap > BREAK_MS) breaks.push(at - gap / 2);
      places.push(place);
    }
    [this.#times, this.#places, this.breaks] = [times, places, breaks];
    this.ticks = times.map((at) => ({ at, text: timeOfDay(at, 3).slice(3) }));
  }

  placeOf(at: number): number {
    if (!Number.isFinite(at)) return at;
    const [times, places] = [this.#times, this.#places];
    const [first, last] = [times[0], times.at(-1)];
    if (first === undefined || last === undefined) return 0;
    if (at <= first) return (places[0] as number) - (first - at);
    if (at >= last) return (places.at(-1) as number) + roomOf(at - last);
    const after = firstAfter(times, at);
    const [t1, t2] = [times[after - 1] as number, times[after] as number];
    const [p1, p2] = [places[after - 1] as number, places[after] as number];
    return p1 + ((at - t1) / (t2 - t1)) * (p2 - p1);
  }

  timeOf(place: number): number {
    const [times, places] = [this.#times, this.#places];
    const after = firstAfter(places, place);
    if (after === 0) return (times[0] ?? 0) - ((places[0] ?? 0) - place);
    if (after === places.length) return times.at(-1) as number;
    const [t1, t2] = [times[after - 1] as number, times[after] as number];
    const [p1, p2] = [places[after - 1] as number, places[after] as number];
    return t1 + ((place - p1) / (p2 - p1)) * (t2 - t1);
  }
}

/** Returns the width of a gap. It increases with the duration, so that later moments are never further to the left. */
function roomOf(gapMs: number): number {
  if (gapMs <= 0) return 0;
  if (gapMs < CLOSE_MS) return LEAST + (gapMs / CLOSE_MS) * (EVENT - LEAST);
  return Math.min(LONGEST, EVENT + GROWTH * Math.log10(gapMs / CLOSE_MS));
}
