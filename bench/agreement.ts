/**
 * PBFT beside Raft on the same frame: members in processes of their own on loopback, with journals, and a client at each of them that has
 * one command under way. In turn, in one run, at 4 and 7 members: commands a second with all clients, how long one client
 * alone waits, and how long nobody is answered when the leader is killed under load. Medians with least and most, and PBFT's share of Raft's. Then what its signatures cost.
 *
 *     node build/bench/agreement.js [--nodes 4 --quick]
 */
import { loadavg } from "node:os";
import { AgreementGroup, type Load } from "./agreement/group.ts";
import { measureSignatures, signaturesOfOneDecision } from "./agreement/signatures.ts";
import { beforeSignalsEnd, commandLine } from "./command-line.ts";
import { median, spread } from "./figures.ts";

/** With fewer, PBFT does not go on without one. */
const FAULT_TOLERANT = 4;
const PROTOCOLS = ["pbft", "raft"] as const;
type Name = (typeof PROTOCOLS)[number];

const { values, amount, whole, wholes } = commandLine(
  "agreement",
  {
    nodes: { such: "4,7", default: "4,7", help: "how many members (default: 4,7)" },
    rounds: { such: "5", help: "how many rounds of each (default: 5; quick: 1)" },
    seconds: { such: "2", help: "for how long each load lasts in a round (default: 2; quick: 0.3)" },
    quick: { help: "one short round of each" },
    json: { help: "one object with the rows and what signatures cost" },
  },
  { note: "With its defaults it takes about four minutes." },
);

const rounds = whole("rounds", values.rounds ?? (values.quick ? "1" : "5"), 1, 100);
const ms = amount("seconds", values.seconds ?? (values.quick ? "0.3" : "2"), 60) * 1_000;
const sizes = wholes("nodes", values.nodes, 1, 16);

beforeSignalsEnd(() => AgreementGroup.endAll());

interface Row {
  readonly nodes: number;
  readonly what: string;
  readonly unit: "/s" | "ms";
  readonly pbft: number[];
  readonly raft: number[];
}

/** All clients at once, then one alone, at a member that leads. */
async function rowsOf(nodes: number): Promise<Row[]> {
  const rows: Row[] = [
    { nodes, what: `${nodes} clients`, unit: "/s", pbft: [], raft: [] },
    { nodes, what: `${nodes} clients, p50`, unit: "ms", pbft: [], raft: [] },
    { nodes, what: "1 client, p50", unit: "ms", pbft: [], raft: [] },
    { nodes, what: "1 client, p99", unit: "ms", pbft: [], raft: [] },
    { nodes, what: "leader killed", unit: "ms", pbft: [], raft: [] },
  ];
  const groups: [Name, AgreementGroup][] = [];
  try {
    for (const name of PROTOCOLS) groups.push([name, await AgreementGroup.of(name, nodes)]);
    for (let round = 0; round <= rounds; round++)
      for (const [name, group] of groups) {
        process.stderr.write(`${nodes} members, round ${round} of ${rounds}: ${name}\n`);
        const lastingMs = round === 0 ? ms / 4 : ms;
        const all = await group.load(group.ids, lastingMs);
        const one = await group.load([await group.leader()], lastingMs);
        if (round > 0) note(rows, name, all, one); // Before that it warms up.
      }
  } finally {
    for (const [, group] of groups) group.end();
  }
  for (let round = 1; nodes >= FAULT_TOLERANT && round <= rounds; round++)
    for (const name of PROTOCOLS) {
      process.stderr.write(`${nodes} members, the leader is killed, ${round} of ${rounds}: ${name}\n`);
      const group = await AgreementGroup.of(name, nodes);
      try {
        rows.at(-1)?.[name].push(await group.failover());
      } finally {
        group.end();
      }
    }
  return rows.filter(({ pbft }) => pbft.length > 0);
}

function note(rows: readonly Row[], name: Name, all: Load, one: Load): void {
  for (const [at, figure] of [all.perSecond, all.p50, one.p50, one.p99].entries()) rows[at]?.[name].push(figure);
}

const digits = ({ unit }: Row): number => (unit === "ms" ? 2 : 0);

try {
  const before = loadavg()[0] ?? 0;
  const rows: Row[] = [];
  for (const nodes of sizes) rows.push(...(await rowsOf(nodes)));
  const cost = measureSignatures(values.quick ? 500 : 5_000);
  const counts = sizes.map((nodes) => ({ nodes, ...signaturesOfOneDecision(nodes) }));
  if (values.json) console.log(JSON.stringify({ loadBefore: before, rows, signatures: { ...cost, counts } }, null, 2));
  else {
    console.log(`load of the machine before: ${before.toFixed(1)}\n`);
    for (const row of rows)
      console.log(
        `N = ${row.nodes}  ${`${row.what}, ${row.unit}`.padEnd(18)}  PBFT ${spread(row.pbft, digits(row)).padEnd(28)}Raft ${spread(row.raft, digits(row)).padEnd(28)}${(median(row.pbft) / median(row.raft)).toFixed(2)} times Raft's`,
      );
    console.log(`\nEd25519: ${cost.signUs.toFixed(0)} µs to sign, ${cost.verifyUs.toFixed(0)} µs to verify`);
    for (const { nodes, signed, verified } of counts) {
      const total = (signed * cost.signUs + verified * cost.verifyUs) / 1_000;
      console.log(
        `N = ${nodes}: one decision takes ${signed} signatures and ${verified} verifications, ${total.toFixed(1)} ms of processor time at all replicas together`,
      );
    }
  }
} catch (error) {
  console.error(`coterie bench agreement: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  AgreementGroup.endAll();
}
process.exit();
