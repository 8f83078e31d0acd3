/**
 * What locks, elections and channels take, among three processes on loopback: locks a second, sends, how long others wait after
 * a crash, a pause or an orderly leave, and which pauses a member survives under each `timing`. Medians with least and most.
 *
 *     node build/bench/services.js [--only locks --quick]
 */
import { parseArgs } from "node:util";
import { type Timing, timings } from "../src/cluster/services/timing.ts";
import { failOvers, STALLS_MS, stalls } from "./services/absences.ts";
import { print, type Row } from "./services/figures.ts";
import { Group } from "./services/group.ts";
import type { Run } from "./services/run.ts";
import { locks, sends } from "./services/throughput.ts";
import { helpIfAsked } from "./usage.ts";

const SECTIONS = ["locks", "sends", "fail-over", "stalls"] as const;
const QUICK_STALLS_MS = [100, 2_000];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: SECTIONS.join() },
    timing: { type: "string", default: timings.join() },
    stalls: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const options = {
  "--only locks": `some of ${SECTIONS.join(", ")} (default: all)`,
  "--timing fast": `for stalls: some of ${timings.join(", ")} (default: all)`,
  "--stalls 100,400": `how many milliseconds a member is stopped (default: ${STALLS_MS.join()})`,
  "--rounds 10": "how many rounds of each (default: 5; quick: 1)",
  "--seconds 2": "for how long locks are taken and messages sent in a round (default: 1; quick: 0.2)",
  "--quick": "one short round of each, and two stalls",
  "--json": "one object for each figure, as a list",
};
const note = `With its defaults it takes about 12 minutes; shorter, a few seconds:
  coterie bench services --only locks --quick`;
helpIfAsked(values.help, "services", options, note);

function refuse(message: string): never {
  console.error(`coterie bench services: ${message}`);
  process.exit(2);
}

function words<W extends string>(option: string, text: string, known: readonly W[]): W[] {
  const given = text.split(",");
  const stray = given.find((word) => !known.some((each) => each === word));
  if (stray !== undefined) refuse(`expected --${option} to be some of ${known.join(", ")}, got ${stray}`);
  return given as W[];
}

function wholes(option: string, text: string, most: number): number[] {
  const given = text.split(",").map(Number);
  if (!given.every((each) => Number.isInteger(each) && each >= 1 && each <= most))
    refuse(`expected --${option} to be whole numbers from 1 to ${most}, got ${text}`);
  return given;
}

const ms = Number(values.seconds ?? (values.quick ? 0.2 : 1)) * 1_000;
if (!(ms > 0 && ms <= 60_000)) refuse(`expected --seconds to be above 0 and at most 60, got ${values.seconds}`);
const [rounds = 1] = wholes("rounds", values.rounds ?? (values.quick ? "1" : "5"), 100);
const stallsMs = wholes("stalls", values.stalls ?? (values.quick ? QUICK_STALLS_MS : STALLS_MS).join(), 30_000);
const sections = words("only", values.only, SECTIONS);
const chosen: Timing[] = words("timing", values.timing, timings);

const isWatched = process.stderr.isTTY;
const progress = (text: string): void => {
  process.stderr.write(isWatched ? `\r\x1b[K${text}` : `${text}\n`);
};
const run: Run = { rounds, ms, progress };

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => {
    Group.endAll();
    process.exit(code);
  });
}

const titles: Readonly<Record<(typeof SECTIONS)[number], string>> = {
  locks:
    "Locks, taken and given back: of the replicated log, with a journal at each member; and of a leased server, in memory",
  sends: "Reliable channels over TCP, payloads of 100 bytes",
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
