import type { PlacedMark } from "./marks.ts";

/** SVG paths around the origin, which lies on the life line. */
export const markShapes: Record<PlacedMark["shape"], string> = {
  /** An hourglass. */
  timeout: "M-4.5 -6.5H4.5L-4.5 6.5H4.5Z",
  /** A pennant. */
  event: "M0 0V-14L8 -10.5L0 -7",
  /** An arrow upwards, from the line to the application. */
  delivery: "M0 -1V-13.5M-4.8 -8.2L0 -13.5L4.8 -8.2",
  /** An arrowhead from outside, onto the line. */
  command: "M-5 -13H5L0 -4Z",
  /** Onwards. */
  start: "M-3 -6.5L7 0L-3 6.5Z",
  crash: "M-6.5 -6.5L6.5 6.5M6.5 -6.5L-6.5 6.5",
};
