/**
 * The replicated service of `join()` beside etcd: three members on loopback each, one disk, every write on the disks of a majority
 * before it is acknowledged. In turn, in one run: writes, linearizable reads and locks a second, how long the fail-over takes,
 * and memory. Medians with least and most, and how many times the peer's figure ours is.
 *
 *     node build/bench/cluster.js [--only writes --quick]
 */
import { parseArgs } from "node:util";
import { Coterie } from "./cluster/coterie.ts";
import { Etcd, etcdMissing, etcdVersion } from "./cluster/etcd.ts";
import { failOver } from "./cluster/fail-over.ts";
import { type Row, Rows, shown } from "./cluster/figures.ts";
import type { Subject, Work } from "./cluster/subject.ts";
import { Group } from "./services/group.ts";
import { helpIfAsked } from "./usage.ts";

const SECTIONS = ["writes", "reads", "locks", "fail-over"] as const;
type Section = (typeof SECTIONS)[number];
const IN_FLIGHT: Readonly<Record<Exclude<Section, "fail-over">, readonly number[]>> = {
  writes: [1, 16, 64, 256],
  reads: [1, 16, 64, 256],
  locks: [1, 16],
};
const MIB = 1_048_576;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: SECTIONS.join() },
    rounds: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const options = {
  "--only writes": `some of ${SECTIONS.join(", ")} (default: all)`,
  "--rounds 10": "how many rounds of each (default: 5; quick: 1)",
  "--seconds 2": "for how long each load lasts in a round (default: 2; quick: 0.3)",
  "--quick": "one short round of each",
  "--json": "one object with the peer's version and one row for each figure",
};
helpIfAsked(values.help, "cluster", options, "With its defaults it takes about six minutes.");

function refuse(message: string): never {
  console.error(`coterie bench cluster: ${message}`);
  process.exit(2);
}

const rounds = Number(values.rounds ?? (values.quick ? 1 : 5));
if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 100))
  refuse(`expected --rounds to be a whole number from 1 to 100, got ${values.rounds}`);
const ms = Number(values.seconds ?? (values.quick ? 0.3 : 2)) * 1_000;
if (!(ms > 0 && ms <= 60_000)) refuse(`expected --seconds to be above 0 and at most 60, got ${values.seconds}`);
const sections = values.only.split(",") as Section[];
const stray = sections.find((section) => !SECTIONS.includes(section));
if (stray !== undefined) refuse(`expected --only to be some of ${SECTIONS.join(", ")}, got ${stray}`);

const isWatched = process.stderr.isTTY;
const progress = (text: string): void => {
  process.stderr.write(isWatched ? `\r\x1b[K${text}` : `${text}\n`);
};
const endAll = (): void => {
  Group.endAll();
  Etcd.endAll();
};
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => {
    endAll();
    process.exit(code);
  });

type Side = readonly ["ours" | "peers", Subject];
const works: Readonly<Record<Exclude<Section, "fail-over">, Work>> = { writes: "write", reads: "read", locks: "lock" };

async function loads(section: Exclude<Section, "fail-over">, sides: readonly Side[]): Promise<Rows> {
  const rows = new Rows(section);
  const work = works[section];
  for (let round = 0; round <= rounds; round++) {
    for (const inFlight of IN_FLIGHT[section]) {
      for (const [side, subject] of sides) {
        progress(`${section}, round ${round} of ${rounds}: ${subject.name}, ${inFlight} in flight`);
        const { perSecond, p50, p99, errors } = await subject.load(work, inFlight, round === 0 ? ms / 4 : ms);
        if (errors > 0) throw new Error(`${subject.name}: ${errors} ${section} failed`);
        if (round === 0) continue; // It warms up.
        rows.add(side, `${inFlight} in flight`, "/s", perSecond);
        rows.add(side, `${inFlight} in flight, p50`, "ms", p50);
        rows.add(side, `${inFlight} in flight, p99`, "ms", p99);
      }
    }
  }
  for (const [side, subject] of sides) rows.add(side, "memory of three members", "MiB", subject.residentBytes() / MIB);
  return rows;
}

async function failOvers(sides: readonly Side[]): Promise<Rows> {
  const rows = new Rows("fail-over");
  for (let round = 1; round <= rounds; round++)
    for (const deed of ["SIGKILL", "SIGSTOP"] as const)
      for (const [side, subject] of sides) {
        progress(`fail-over, round ${round} of ${rounds}: ${subject.name}, ${deed}`);
        rows.add(side, `${deed} of the leader until the next write`, "ms", await failOver(subject, deed));
      }
  return rows;
}

function print(section: Section, rows: readonly Row[], peer: string): void {
  const lines = [[section, "Coterie", peer, "times"], ...rows.map(shown)];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => (line[column] as string).length)));
  console.log();
  for (const line of lines)
    console.log(
      line
        .map((cell, at) => cell.padEnd((widths[at] as number) + 2))
        .join("")
        .trimEnd(),
    );
}

try {
  const missing = await etcdMissing();
  const peer = missing === null ? `etcd ${await etcdVersion()}` : "etcd";
  if (missing !== null) progress(`without a peer: ${missing}\n`);
  const sides: Side[] = [["ours", await Coterie.start()]];
  if (missing === null) sides.push(["peers", await Etcd.start()]);
  const all: Row[] = [];
  for (const section of sections) {
    const { all: rows } = section === "fail-over" ? await failOvers(sides) : await loads(section, sides);
    if (isWatched) progress("");
    all.push(...rows);
    if (!values.json) print(section, rows, peer);
  }
  if (values.json) console.log(JSON.stringify({ peer: missing === null ? peer : null, rows: all }, null, 2));
} finally {
  endAll();
}
process.exit();
