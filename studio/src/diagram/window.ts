/**
 * The time range that the diagram shows, and how it changes with zooming and panning. Times and spans are in
 * milliseconds.
 */

export interface Window {
  readonly from: number;
  readonly spanMs: number;
}

/**
 * The position of the present while the diagram follows it, as a fraction of the width. The space to the right is for
 * the latest labels.
 */
export const PRESENT = 0.93;

export const SHORTEST_MS = 0.5;
/** The longest span: one minute up to the present. */
export const LONGEST_MS = 60_000 / PRESENT;

/** The margin to the left and right of a framed range, as a fraction of the range. */
const MARGIN = 0.12;

/** Zooms by `factor` so that `at` keeps its position on the screen. A factor below 1 zooms in. */
export function zoomed(window: Window, at: number, factor: number): Window {
  const spanMs = clamp(window.spanMs * factor, SHORTEST_MS, LONGEST_MS);
  const share = (at - window.from) / window.spanMs;
  return { from: at - share * spanMs, spanMs };
}

export function panned(window: Window, byMs: number): Window {
  return { ...window, from: window.from + byMs };
}

/** Returns a window that shows everything from `from` to `to`, with a margin. */
export function framing(from: number, to: number): Window {
  const spanMs = clamp((to - from) * (1 + 2 * MARGIN), SHORTEST_MS * 4, LONGEST_MS);
  return { from: (from + to - spanMs) / 2, spanMs };
}

/** Returns a window with the present at its edge. */
export function followingWindow(now: number, spanMs: number): Window {
  return { from: now - spanMs * PRESENT, spanMs };
}

/** Keeps the window within the known range: not after the present, and not entirely before the beginning. */
export function within(window: Window, begin: number, now: number): Window {
  const latest = followingWindow(now, window.spanMs).from;
  const earliest = Math.min(begin - window.spanMs * 0.1, latest);
  return { ...window, from: clamp(window.from, earliest, latest) };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
