/**
 * The replicated service of `join()` beside etcd: three members on loopback each, one disk, every write on the disks of a majority
 * before it is acknowledged. In turn, in one run: writes, linearizable reads and locks a second, how long the fail-over takes,
 * and memory. Medians with least and most, and how many times the peer's figure ours is. With `--api etcd` our members serve etcd's API,
 * and both are loaded by etcd's own client in Go.
 *
 *     node build/bench/cluster.js [--only writes --quick]
 */
import { parseArgs } from "node:util";
import { Coterie } from "./cluster/coterie.ts";
import { CoterieServingEtcd } from "./cluster/coterie-etcd.ts";
import { Etcd, etcdMissing, etcdVersion } from "./cluster/etcd.ts";
import { failOver } from "./cluster/fail-over.ts";
import { type Row, Rows, shown } from "./cluster/figures.ts";
import type { EtcdWork, Loaded, Subject } from "./cluster/subject.ts";
import { Group } from "./services/group.ts";
import { helpIfAsked } from "./usage.ts";

/** By what the members are loaded: `join()` in one of them, or etcd's API. */
const SECTIONS_OF = {
  join: ["writes", "reads", "locks", "fail-over"],
  etcd: ["writes", "reads", "serializable-reads", "locks", "session-locks"],
} as const;
type Section = (typeof SECTIONS_OF)[keyof typeof SECTIONS_OF][number];
type LoadSection = Exclude<Section, "fail-over">;
const IN_FLIGHT: Readonly<Record<LoadSection, readonly number[]>> = {
  writes: [1, 16, 64, 256],
  reads: [1, 16, 64, 256],
  "serializable-reads": [1, 16, 64, 256],
  locks: [1, 16],
  "session-locks": [1, 16],
};
const MIB = 1_048_576;

const { values } = parseArgs({
  options: {
    api: { type: "string", default: "join" },
    only: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const options = {
  "--api etcd":
    "our members serve etcd's API, and the same client in Go loads both (default: join, by join() in our leader)",
  "--only writes": `some of ${SECTIONS_OF.join.join(", ")}; with --api etcd of ${SECTIONS_OF.etcd.join(", ")} (default: all)`,
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
if (values.api !== "join" && values.api !== "etcd") refuse(`expected --api to be join or etcd, got ${values.api}`);
const known: readonly Section[] = SECTIONS_OF[values.api];
const sections = (values.only?.split(",") ?? known) as readonly Section[];
const stray = sections.find((section) => !known.includes(section));
if (stray !== undefined) refuse(`expected --only to be some of ${known.join(", ")}, got ${stray}`);

const isWatched = process.stderr.isTTY;
const progress = (text: string): void => {
  process.stderr.write(isWatched ? `\r\x1b[K${text}` : `${text}\n`);
};
const endAll = (): void => {
  Group.endAll();
  CoterieServingEtcd.endAll();
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

type Side<S> = readonly ["ours" | "peers", S];
const works: Readonly<Record<LoadSection, EtcdWork>> = {
  writes: "write",
  reads: "read",
  "serializable-reads": "serializable-read",
  locks: "lock",
  "session-locks": "session-lock",
};

async function loads(section: LoadSection, sides: readonly Side<Loaded<EtcdWork>>[]): Promise<Rows> {
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

async function failOvers(sides: readonly Side<Subject>[]): Promise<Rows> {
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
  if (missing !== null && values.api === "etcd") refuse(missing); // Its client loads ours as well.
  if (missing !== null) progress(`without a peer: ${missing}\n`);
  const peers: Side<Etcd>[] = missing === null ? [["peers", await Etcd.start()]] : [];
  const byJoin: Side<Subject>[] = values.api === "join" ? [["ours", await Coterie.start()], ...peers] : [];
  const sides: Side<Loaded<EtcdWork>>[] =
    values.api === "join" ? byJoin : [["ours", await CoterieServingEtcd.start()], ...peers];
  const all: Row[] = [];
  for (const section of sections) {
    const { all: rows } = section === "fail-over" ? await failOvers(byJoin) : await loads(section, sides);
    if (isWatched) progress("");
    all.push(...rows);
    if (!values.json) print(section, rows, peer);
  }
  if (values.json) console.log(JSON.stringify({ peer: missing === null ? peer : null, rows: all }, null, 2));
} finally {
  endAll();
}
process.exit();
