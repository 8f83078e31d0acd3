/**
 * What locks, elections and channels take, among three processes on loopback: locks a second, sends, how long others wait after
 * a crash, a pause or an orderly leave, and which pauses a member survives under each `timing`. Medians with least and most.
 *
 *     node build/bench/services.js [--only locks --quick]
 */
import { type Timing, timings } from "../src/cluster/services/timing.ts";
import { beforeSignalsEnd, commandLine, isWatched, progress } from "./command-line.ts";
import { failOvers, STALLS_MS, stalls } from "./services/absences.ts";
import { print, type Row } from "./services/figures.ts";
import { Group } from "./services/group.ts";
import type { Run } from "./services/run.ts";
import { locks, sends } from "./services/throughput.ts";

const SECTIONS = ["locks", "sends", "fail-over", "stalls"] as const;
const QUICK_STALLS_MS = [100, 2_000];

const { values, amount, someOf, whole, wholes } = commandLine(
  "services",
  {
    only: { such: "locks", default: SECTIONS.join(), help: `some of ${SECTIONS.join(", ")} (default: all)` },
    timing: { such: "fast", default: timings.join(), help: `for stalls: some of ${timings.join(", ")} (default: all)` },
    stalls: { such: "100,400", help: `how many milliseconds a member is stopped (default: ${STALLS_MS.join()})` },
    rounds: { such: "10", help: "how many rounds of each (default: 5; quick: 1)" },
    seconds: { such: "2", help: "for how long locks are taken and messages sent in a round (default: 1; quick: 0.2)" },
    quick: { help: "one short round of each, and two stalls" },
    json: { help: "one object for each figure, as a list" },
  },
  {
    note: `With its defaults it takes about 12 minutes; shorter, a few seconds:
  coterie bench services --only locks --quick`,
  },
);

const ms = amount("seconds", values.seconds ?? (values.quick ? "0.2" : "1"), 60) * 1_000;
const rounds = whole("rounds", values.rounds ?? (values.quick ? "1" : "5"), 1, 100);
const stallsMs = wholes("stalls", values.stalls ?? (values.quick ? QUICK_STALLS_MS : STALLS_MS).join(), 1, 30_000);
const sections = someOf("only", values.only, SECTIONS);
const chosen: Timing[] = someOf("timing", values.timing, timings);

const run: Run = { rounds, ms, progress };

beforeSignalsEnd(() => Group.endAll());

const titles: Readonly<Record<(typeof SECTIONS)[number], string>> = {
  locks: "Locks, acquired and released",
  sends: "Channels over TCP, and one on the log, payloads of 100 bytes",
  "fail-over": "From what happens to a member until another is in its place",
  stalls: "What survives while its member is stopped; what a crash costs",
};

async function withGroup<T>(measure: (group: Group) => Promise<T>): Promise<T> {
  const group = await Group.of("default");
  const result = await measure(group);
  group.end();
  return result;
}

const all: Row[] = [];
function say(title: string, rows: readonly Row[]): void {
  if (isWatched) progress("");
  all.push(...rows);
  if (!values.json) print(title, rows);
}

try {
  for (const section of sections) {
    if (section === "locks") say(titles.locks, (await withGroup((group) => locks(group, run))).all);
    if (section === "sends") say(titles.sends, (await withGroup((group) => sends(group, run))).all);
    if (section === "fail-over") say(titles[section], (await failOvers("default", run)).all);
    if (section === "stalls")
      for (const timing of chosen) say(`${titles.stalls}: timing ${timing}`, (await stalls(timing, stallsMs, run)).all);
  }
  if (values.json) console.log(JSON.stringify(all, null, 2));
} finally {
  Group.endAll();
}
process.exit();
