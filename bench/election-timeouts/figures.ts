/** The two graphs of the figure: which time-outs are tried, and what came of all trials with each. */
import { downtimeMs, type Timeouts } from "./trial.ts";

const ofMs = (minMs: number, maxMs: number): Timeouts => ({ minMs, maxMs });

/** More and more randomness. */
export const spreads = [150, 151, 155, 175, 200, 300].map((maxMs) => ofMs(150, maxMs));
/** Shorter and shorter. */
export const scales = [ofMs(12, 24), ofMs(25, 50), ofMs(50, 100), ofMs(100, 200), ofMs(150, 300)];

export interface Line extends Timeouts {
  readonly trials: number;
  /** Ascending, in milliseconds. */
  readonly downtimes: readonly number[];
  readonly median: number;
  readonly mean: number;
  readonly worst: number;
}

/** Where nothing is random a tenth of the trials is enough: so it was in the paper. */
const FEWER = 10;

export function line(timeouts: Timeouts, wanted: number): Line {
  const trials = timeouts.minMs === timeouts.maxMs ? Math.ceil(wanted / FEWER) : wanted;
  const downtimes = Array.from({ length: trials }, (_, seed) => downtimeMs(timeouts, seed)).sort((a, b) => a - b);
  const mean = downtimes.reduce((sum, each) => sum + each, 0) / trials;
  return {
    ...timeouts,
    trials,
    downtimes,
    median: downtimes[trials >> 1] as number,
    mean,
    worst: downtimes.at(-1) as number,
  };
}

export const nameOf = ({ minMs, maxMs }: Timeouts): string => `${minMs}–${maxMs} ms`;

/** What the paper says of them in numbers. */
export const published: readonly {
  readonly timeouts: string;
  readonly what: "median" | "mean" | "worst";
  readonly ms: number;
}[] = [
  { timeouts: "150–155 ms", what: "median", ms: 287 },
  { timeouts: "150–200 ms", what: "worst", ms: 513 },
  { timeouts: "12–24 ms", what: "mean", ms: 35 },
  { timeouts: "12–24 ms", what: "worst", ms: 152 },
];
