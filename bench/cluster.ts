/**
 * Compares the replicated service of `join()` with peers (etcd, Redis, ZooKeeper). Each has three members on loopback
 * and one disk, and every write is durable on a majority before it is acknowledged. In alternating rounds of one run,
 * it measures writes, linearizable reads and locks per second, how late a watcher sees changes, the fail-over time, and
 * memory. Prints medians with minimum and maximum, and the ratio to each peer. With `--api etcd`, our members serve
 * etcd's API, and etcd's own Go client generates the load for both.
 *
 *     node build/bench/cluster.js [--only writes --quick]
 */
import { Coterie } from "./cluster/coterie.ts";
import { CoterieServingEtcd, Etcd, etcdMissing } from "./cluster/etcd.ts";
import { Redis, redisVersion } from "./cluster/redis.ts";
import { type EtcdWork, failOver, type LedSystem, type System } from "./cluster/system.ts";
import { isZookeeperInstalled, Zookeeper } from "./cluster/zookeeper.ts";
import { beforeSignalsEnd, commandLine, progress } from "./command-line.ts";
import { OURS, printRows, type Row, Rows } from "./results.ts";
import { Processes } from "./workers.ts";

/** The sections for each source of load: `join()` in one of the members, or a client of etcd's API. */
const SECTIONS_OF = {
  join: ["writes", "reads", "locks", "watches", "fail-over"],
  etcd: ["writes", "reads", "serializable-reads", "locks", "session-locks", "watches"],
} as const;
type Section = (typeof SECTIONS_OF)[keyof typeof SECTIONS_OF][number];
type LoadSection = Exclude<Section, "fail-over">;
const IN_FLIGHT: Readonly<Record<LoadSection, readonly number[]>> = {
  writes: [1, 16, 64, 256],
  reads: [1, 16, 64, 256],
  "serializable-reads": [1, 16, 64, 256],
  locks: [1, 16],
  "session-locks": [1, 16],
  watches: [1],
};
const PEERS = ["etcd", "zookeeper", "redis"] as const;
type Peer = (typeof PEERS)[number];
const isApi = (text: string): text is keyof typeof SECTIONS_OF => Object.hasOwn(SECTIONS_OF, text);
const MIB = 1_048_576;

const { values, refuse, amount, whole, someOf } = commandLine(
  "cluster",
  {
    api: {
      such: "etcd",
      default: "join",
      help: "our members serve etcd's API, and the same client in Go loads both (default: join, by join() in our leader)",
    },
    only: {
      such: "writes",
      help: `some of ${SECTIONS_OF.join.join(", ")}; with --api etcd of ${SECTIONS_OF.etcd.join(", ")} (default: all)`,
    },
    peers: {
      such: "etcd",
      help: `some of ${PEERS.join(", ")}, or none; with --api etcd it is etcd (default: those that are installed)`,
    },
    rounds: { such: "10", help: "how many rounds of each (default: 5; quick: 1)" },
    seconds: { such: "2", help: "for how long each load lasts in a round (default: 2; quick: 0.3)" },
    quick: { help: "one short round of each" },
    json: { help: "one object with the peers and their versions, and one row for each figure" },
  },
  { note: "With its defaults it takes about ten minutes." },
);

const rounds = whole("rounds", values.rounds ?? (values.quick ? "1" : "5"), 1, 100);
const ms = amount("seconds", values.seconds ?? (values.quick ? "0.3" : "2"), 60) * 1_000;
const api = isApi(values.api) ? values.api : refuse(`expected --api to be join or etcd, got ${values.api}`);
const known: readonly Section[] = SECTIONS_OF[api];
const sections = values.only === undefined ? known : someOf("only", values.only, known);

beforeSignalsEnd(() => Processes.endAll());

const works: Readonly<Record<LoadSection, EtcdWork>> = {
  writes: "write",
  reads: "read",
  "serializable-reads": "serializable-read",
  locks: "lock",
  "session-locks": "session-lock",
  watches: "watch",
};

async function loads(section: LoadSection, systems: readonly System<EtcdWork>[]): Promise<Rows> {
  const rows = new Rows(section);
  const work = works[section];
  for (let round = 0; round <= rounds; round++) {
    for (const inFlight of IN_FLIGHT[section]) {
      for (const system of systems) {
        progress(`${section}, round ${round} of ${rounds}: ${system.name}, ${inFlight} in flight`);
        const { perSecond, p50, p99, errors } = await system.load(work, inFlight, round === 0 ? ms / 4 : ms);
        if (errors > 0) throw new Error(`${system.name}: ${errors} ${section} failed`);
        if (round === 0) continue; // This round is a warm-up.
        const what = section === "watches" ? "from a write to a watcher of another member" : `${inFlight} in flight`;
        if (section !== "watches") rows.add(what, "/s", perSecond, system.name);
        rows.add(`${what}, p50`, "ms", p50, system.name);
        rows.add(`${what}, p99`, "ms", p99, system.name);
      }
    }
  }
  for (const system of systems) rows.add("memory of all members", "MiB", system.residentBytes() / MIB, system.name);
  return rows;
}

async function failOvers(systems: readonly LedSystem[]): Promise<Rows> {
  const rows = new Rows("fail-over");
  for (let round = 1; round <= rounds; round++)
    for (const signal of ["SIGKILL", "SIGSTOP"] as const)
      for (const system of systems) {
        progress(`fail-over, round ${round} of ${rounds}: ${system.name}, ${signal}`);
        rows.add(`${signal} of the leader until the next write`, "ms", await failOver(system, signal), system.name);
      }
  return rows;
}

/** Returns why a peer cannot be measured here, or null if it can. */
async function missing(peer: Peer): Promise<string | null> {
  if (peer === "etcd") return etcdMissing();
  if (peer === "redis") return (await redisVersion()) === null ? "Redis is not installed (Debian: redis-server)" : null;
  return isZookeeperInstalled() ? null : "ZooKeeper is not installed (Debian: zookeeper default-jre-headless)";
}

/** Returns the requested peers or, by default, all installed ones. */
async function chosenPeers(): Promise<readonly Peer[]> {
  const asked = values.peers?.split(",").filter((peer) => peer !== "none");
  const stray = asked?.find((peer) => !PEERS.includes(peer as Peer));
  if (stray !== undefined) refuse(`expected --peers to be some of ${PEERS.join(", ")}, or none, got ${stray}`);
  const chosen: Peer[] = [];
  for (const peer of (asked as readonly Peer[] | undefined) ?? PEERS) {
    const why = await missing(peer);
    if (why === null) chosen.push(peer);
    else if (asked === undefined) console.error(`without a peer: ${why}`);
    else refuse(why);
  }
  return chosen;
}

interface Systems {
  readonly systems: readonly System<EtcdWork>[];
  /** The systems whose leader can be stopped. */
  readonly led: readonly LedSystem[];
}

async function byJoin(): Promise<Systems> {
  const peers = await chosenPeers();
  const led: LedSystem[] = [await Coterie.start()];
  if (peers.includes("etcd")) led.push(await Etcd.start());
  if (peers.includes("zookeeper")) led.push(await Zookeeper.start());
  return { systems: peers.includes("redis") ? [...led, await Redis.start()] : led, led };
}

async function byEtcd(): Promise<Systems> {
  const why = await etcdMissing();
  if (why !== null) refuse(why); // etcd's client also generates the load for our members.
  return { systems: [await CoterieServingEtcd.start(), await Etcd.start()], led: [] };
}

try {
  const { systems, led } = api === "join" ? await byJoin() : await byEtcd();
  const all: Row[] = [];
  for (const section of sections) {
    const able = section === "watches" ? systems.filter(({ hasWatches }) => hasWatches !== false) : systems;
    const { all: rows } = section === "fail-over" ? await failOvers(led) : await loads(section, able);
    progress("");
    all.push(...rows);
    if (!values.json) printRows(section, rows);
  }
  const peers = systems.map(({ name }) => name).filter((name) => name !== OURS);
  if (values.json) console.log(JSON.stringify({ peers, rows: all }, null, 2));
} finally {
  Processes.endAll();
}
process.exit();
