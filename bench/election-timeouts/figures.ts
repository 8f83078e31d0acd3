/** The two graphs of the figure: which time-outs are tried, and what came of all trials with each. */
import { random } from "../../src/core/random.ts";
import { type Delay, sampler } from "../../src/sim/delay.ts";
import { DELAY_MS, downtimeMs, type Timeouts } from "./trial.ts";

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

export function line(timeouts: Timeouts, wanted: number, delayMs: Delay = DELAY_MS): Line {
  const trials = timeouts.minMs === timeouts.maxMs ? Math.ceil(wanted / FEWER) : wanted;
  const downtimes = Array.from({ length: trials }, (_, seed) => downtimeMs(timeouts, seed, delayMs)).sort(
    (a, b) => a - b,
  );
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

/** What "a broadcast time of roughly 15 ms" may mean for one message. §5.6: the mean time to send to all others and have all their answers. */
export const readings: readonly { readonly name: string; readonly delayMs: Delay }[] = [
  { name: "always 7.5 ms: any round trip takes 15 ms", delayMs: 7.5 },
  { name: "2 to 9.7 ms: the last of four answers comes after 15 ms in the mean", delayMs: [2, 9.7] },
  { name: "1.5 to 6 ms, fitted", delayMs: DELAY_MS },
];

const BROADCASTS = 20_000;
const FOLLOWERS = 4;

/** How long it takes in the mean until the last of the followers has answered. */
export function broadcastMs(delayMs: Delay): number {
  const draw = sampler(delayMs, random(1), "a message's delay");
  let sum = 0;
  for (let i = 0; i < BROADCASTS; i++) sum += Math.max(...Array.from({ length: FOLLOWERS }, () => draw() + draw()));
  return sum / BROADCASTS;
}

export interface Comparison {
  readonly timeouts: string;
  readonly what: "median" | "mean" | "worst";
  readonly ms: number;
  readonly published: number;
}

/** The published figures beside what comes of a reading. */
export const compared = (delayMs: Delay, trials: number): Comparison[] =>
  published.map(({ timeouts, what, ms }) => {
    const wanted = [...spreads, ...scales].find((each) => nameOf(each) === timeouts) as Timeouts;
    return { timeouts, what, ms: line(wanted, trials, delayMs)[what], published: ms };
  });
