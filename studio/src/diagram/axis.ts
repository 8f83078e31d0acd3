/** The ticks of the time axis: positions and labels. */

export interface Tick {
  readonly at: number;
  readonly text: string;
}

export interface Axis {
  readonly ticks: readonly Tick[];
  /** The time that the ticks are counted from. Null if they show the time of day. */
  readonly origin: number | null;
}

const TICK_PX = 96;
/** Windows longer than this show the time of day. */
const CLOCK_MS = 2_500;
const STEPS = [1, 2, 5, 10];

export function axisOf(from: number, to: number, widthPx: number, origin: number | null): Axis {
  const finest = niceStep(((to - from) * TICK_PX) / Math.max(widthPx, 1));
  const step = to - from > CLOCK_MS ? Math.max(finest, 1_000) : finest;
  if (step >= 1_000) {
    const ticks = multiples(step, from, to).map((at) => ({ at, text: timeOfDay(at, 0) }));
    return { ticks, origin: null };
  }
  // Show fractions of a second relative to a fixed moment, because that is easier to read.
  const start = origin ?? Math.floor(from / 1_000) * 1_000;
  const ticks = multiples(step, from - start, to - start).map((offset) => ({
    at: start + offset,
    text: offsetText(offset, step),
  }));
  return { ticks, origin: start };
}

/**
 * Returns a tick interval that is at least `least`: 1, 2 or 5 times a power of ten or, for large values, tens of
 * seconds or minutes.
 */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return (STEPS.find((each) => each * power >= least * 0.999) ?? 10) * power;
}

function multiples(step: number, from: number, to: number): number[] {
  const found: number[] = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) found.push(i * step);
  return found;
}

function offsetText(offset: number, step: number): string {
  if (Math.abs(offset) < step / 2) return "0";
  const sign = offset < 0 ? "−" : "+";
  const size = Math.abs(offset);
  if (step < 0.01) return `${sign}${Math.round(size * 1_000)} µs`;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return `${sign}${size.toFixed(digits)} ms`;
}

/** Formats the local time of day with this number of decimals. */
export function timeOfDay(at: number, digits: 0 | 3 | 6): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (digits === 0) return clock;
  const fraction = Math.floor((((at % 1_000) + 1_000) % 1_000) * 1_000);
  const micros = String(fraction).padStart(6, "0");
  return `${clock}.${digits === 3 ? micros.slice(0, 3) : `${micros.slice(0, 3)} ${micros.slice(3)}`}`;
}

/** Formats a duration, such as `0.412 ms`, `37 ms` or `1.2 s`. */
export function durationText(ms: number): string {
  if (ms >= 1_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms >= 100) return `${Math.round(ms)} ms`;
  if (ms >= 10) return `${ms.toFixed(1)} ms`;
  return ms >= 1 ? `${ms.toFixed(2)} ms` : `${Math.round(ms * 1_000)} µs`;
}
