/** What the rounds of `coterie bench multicast` come to, and how it is shown. */
import { median, spread } from "../figures.ts";
import { MARK_EVERY, type Sequence, type Way } from "./orders.ts";

export interface Named {
  readonly name: string;
  /** All members deliver the same sequence. */
  readonly isTotal: boolean;
  readonly way: Way;
}

export interface Cell {
  readonly processes: number;
  readonly bytes: number;
  readonly senders: "one" | "all";
}

/** One round of one way. */
export interface Figure {
  /** Delivered by every member. */
  readonly perSecond: number;
  /** What all processes together work for a message. */
  readonly cpuUs: number;
  /** The share of what was sent that did not arrive everywhere. */
  readonly lost: number;
  readonly agrees: boolean;
  /** How old messages were when they arrived, ascending, in milliseconds. */
  readonly ages: readonly number[];
}

/** Whether all are the same, as far as the shortest goes. */
export function sameOrder(sequences: readonly Sequence[]): boolean {
  const counts = sequences.map(({ count }) => count);
  const last = Math.floor(Math.min(...counts) / MARK_EVERY) - 1;
  const isComplete = new Set(counts).size === 1;
  return new Set(sequences.map(({ marks, order }) => (isComplete ? order : marks[last]))).size === 1;
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

export function title({ processes, bytes, senders }: Cell): string {
  return `${processes} processes, payloads of ${bytes} bytes, ${senders === "one" ? "one sends" : "all send"}`;
}

/** What is opened, waited for and closed in a round, about. */
const AROUND_MS = 200;

/** What will be run, and about how long it takes: in a round members send for `ms` as fast as they can, and again at a pace. */
export function planned(tables: number, ways: number, rounds: number, ms: number): string {
  const all = tables * ways * (rounds + 1);
  const seconds = (all * (2 * ms + AROUND_MS)) / 1_000;
  const time = seconds < 120 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} minutes`;
  const size = `${tables} ${tables === 1 ? "table" : "tables"} of ${ways} rows`;
  return `${all} rounds, for ${size}: one that warms up and ${rounds} that count for each row; about ${time}`;
}

/** Prints the table of a cell, unless it is for machines. */
export function say(cell: Cell, figures: ReadonlyMap<Named, readonly Figure[]>, isJson: boolean): object[] {
  const bare = [...figures].find(([{ way }]) => way.kind === "net")?.[1] ?? [];
  const rows = [...figures].map(([{ name }, of]) => ({
    ...cell,
    name,
    perSecond: of.map(({ perSecond }) => perSecond),
    ofBareNet: of.map(({ perSecond }, round) => perSecond / (bare[round]?.perSecond ?? Number.NaN)),
    delayMs: median(of.map(({ ages }) => quantile(ages, 0.5))),
    delayP99Ms: median(of.map(({ ages }) => quantile(ages, 0.99))),
    cpuUs: median(of.map(({ cpuUs }) => cpuUs)),
    lost: median(of.map(({ lost }) => lost)),
    agrees: of.every(({ agrees }) => agrees),
  }));
  if (isJson) return rows;
  console.log(`\n${title(cell)}\n`);
  print("", "messages/s [least–most]", "of bare net", "delay ms: median, p99", "µs of processor a message");
  for (const { name, perSecond, ofBareNet, delayMs, delayP99Ms, cpuUs, lost, agrees } of rows) {
    const remarks = [
      lost > 0 ? `${(100 * lost).toFixed(1)} % did not arrive everywhere` : "",
      agrees ? "" : "DISAGREE",
    ];
    const delay = `${delayMs.toFixed(2)}, ${delayP99Ms.toFixed(2)}`;
    const cpu = `${cpuUs.toFixed(1).padStart(6)}  ${remarks.join(" ")}`;
    print(name, spread(perSecond, 0), spread(ofBareNet, 2), delay, cpu);
  }
  return rows;
}

function print(name: string, rate: string, ratio: string, delay: string, rest: string): void {
  console.log(`  ${name.padEnd(27)}${rate.padEnd(27)}${ratio.padEnd(19)}${delay.padEnd(24)}${rest}`.trimEnd());
}
