/**
 * Compares PBFT with Raft. Each member is a process on loopback with a journal and one client, which has one command in
 * flight at a time. In alternating rounds with 4 and 7 members, it measures commands per second with all clients, the
 * latency seen by a single client, and how long no client gets an answer after the leader is killed under load.
 * Finally, it measures the cost of PBFT's signatures.
 *
 *     npx coterie bench agreement [--nodes 4 --quick]
 */
import { generateKeyPairSync } from "node:crypto";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Bench } from "tinybench";
import { replicated } from "../src/protocols/consensus/family/systems.ts";
import { type Pbft, type PbftOptions, pbft } from "../src/protocols/consensus/pbft/pbft.ts";
import { contexts, withContext } from "../src/protocols/contexts.ts";
import { protocolNamed } from "../src/protocols/index.ts";
import { makeKeys, needsKeys } from "../src/runtime/member-keys.ts";
import { ed25519 } from "../src/runtime/signatures.ts";
import { simulation } from "../src/sim/index.ts";
import { NodeCluster } from "./cluster/coterie.ts";
import { beforeSignalsEnd, commandLine, progress } from "./command-line.ts";
import { loadOf, type Throughput } from "./load.ts";
import { printRows, type Row, Rows } from "./results.ts";
import { eventually, Processes } from "./workers.ts";

/** The minimum number of replicas that PBFT needs to tolerate a crash. */
const FAULT_TOLERANT = 4;
const PROTOCOLS = ["pbft", "raft"] as const;
type Name = (typeof PROTOCOLS)[number];
const PATIENCE_MS = 60_000;
/** How long clients send requests before the leader is killed. */
const LOADED_MS = 500;

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

/** Starts members of the replicated log and waits until all of them answer. */
async function started(protocol: Name, count: number): Promise<NodeCluster> {
  const fields = { protocol, options: { machine: { kind: "counter" } } };
  const cluster = await NodeCluster.start({ count, fields }, (folder, ids) => {
    if (!needsKeys(protocolNamed(protocol).node())) return {};
    const keys = { own: join(folder, "{id}.key"), all: join(folder, "{id}.pub") };
    makeKeys(keys, ids);
    return { keys };
  });
  for (const id of cluster.ids)
    await eventually(`an answer of member ${id} of ${protocol}`, () => added(cluster, id).catch(() => null));
  return cluster;
}

/**
 * Sends a command to a member over HTTP.
 * @returns null if the member rejected it
 */
async function added(cluster: NodeCluster, id: number): Promise<true | null> {
  const answer = await fetch(`http://${cluster.address(id, 1)}/request`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ type: "client", body: { type: "execute", operation: "add 1" } }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const { body } = (await answer.json()) as { body?: { type: string } };
  return body?.type === "result" ? true : null;
}

const leaderOf = (cluster: NodeCluster): Promise<number> =>
  cluster.leader(({ leader }: { leader: number | null }) => leader);

/** Runs one client per member, each with one command in flight. */
async function load(cluster: NodeCluster, ids: readonly number[], forMs: number): Promise<Throughput> {
  const found = await loadOf(ids.length, forMs, async (client) => {
    if ((await added(cluster, ids[client] as number)) === null) throw new Error("refused");
  });
  if (found.errors > 0) throw new Error(`${found.errors} commands were refused`);
  return found;
}

/**
 * Kills the leader while clients of the other members have requests in flight.
 * @returns the longest time without any answer, until every other member has answered a request sent after the kill
 */
async function failOver(cluster: NodeCluster): Promise<number> {
  const leader = await leaderOf(cluster);
  let killedAt = Number.POSITIVE_INFINITY;
  const answeredAt: number[] = [];
  const untilAnswered = async (id: number): Promise<void> => {
    for (let requestedAt = 0; requestedAt <= killedAt; ) {
      requestedAt = performance.now();
      if ((await added(cluster, id)) !== null) answeredAt.push(performance.now());
    }
  };
  const answered = Promise.all(cluster.ids.filter((id) => id !== leader).map(untilAnswered));
  await sleep(LOADED_MS);
  cluster.signal(String(leader), "SIGKILL");
  killedAt = performance.now();
  await answered;
  const after = [killedAt, ...answeredAt.filter((at) => at > killedAt).sort((a, b) => a - b)];
  return Math.max(...after.slice(1).map((at, index) => at - (after[index] as number)));
}

/** Measures all clients at once, a single client of the leader, and the fail-over time. */
async function rowsOf(nodes: number): Promise<readonly Row[]> {
  const rows = new Rows(`N = ${nodes}`);
  const clusters: [Name, NodeCluster][] = [];
  for (const name of PROTOCOLS) clusters.push([name, await started(name, nodes)]);
  for (let round = 0; round <= rounds; round++)
    for (const [name, cluster] of clusters) {
      progress(`${nodes} members, round ${round} of ${rounds}: ${name}`);
      const forMs = round === 0 ? ms / 4 : ms;
      const all = await load(cluster, cluster.ids, forMs);
      const one = await load(cluster, [await leaderOf(cluster)], forMs);
      if (round === 0) continue; // This round is a warm-up.
      rows.add(`${nodes} clients`, "/s", all.perSecond, name);
      rows.add(`${nodes} clients, p50`, "ms", all.p50, name);
      rows.add("1 client, p50", "ms", one.p50, name);
      rows.add("1 client, p99", "ms", one.p99, name);
    }
  for (const [, cluster] of clusters) cluster.end();
  for (let round = 1; nodes >= FAULT_TOLERANT && round <= rounds; round++)
    for (const name of PROTOCOLS) {
      progress(`${nodes} members, the leader is killed, ${round} of ${rounds}: ${name}`);
      const cluster = await started(name, nodes);
      rows.add("leader killed", "ms", await failOver(cluster), name);
      cluster.end();
    }
  progress("");
  return rows.all;
}

/** Counts the signatures needed for one command from the primary's client, over all replicas. */
function signaturesOfOneDecision(nodes: number): { readonly signed: number; readonly verified: number } {
  const counts = { signed: 0, verified: 0 };
  const counting = contexts(({ signatures }) => ({
    signatures: {
      sign(text) {
        counts.signed += 1;
        return signatures.sign(text);
      },
      isSigned(by, text, signature) {
        counts.verified += 1;
        return signatures.isSigned(by, text, signature);
      },
    },
  }));
  const counted = (options?: Partial<PbftOptions>): ReturnType<typeof pbft> => withContext(pbft(options), counting);
  const ids = Array.from({ length: nodes }, (_, id) => id);
  const sim = simulation({
    protocol: replicated<Pbft, Partial<PbftOptions>>(counted),
    nodes: ids,
    seed: 1,
    delayMs: 10,
  });
  for (const id of ids) sim.start(id);
  sim.command(0, { type: "client", body: { type: "use", commands: 1 } });
  sim.run(1_000);
  return counts;
}

/** Measures microseconds per operation for text that is as long as a prepare message. */
function measureSignatures(times: number): { readonly signUs: number; readonly verifyUs: number } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { sign, isSigned } = ed25519({ own: privateKey, all: new Map([[0, publicKey]]) });
  const text = JSON.stringify(["prepare", 0, { digest: "x".repeat(64), sequence: 1, view: 0 }]);
  const signature = sign(text);
  const bench = new Bench({ iterations: times, time: 0, throws: true })
    .add("sign", () => sign(text))
    .add("verify", () => isSigned(0, text, signature));
  const [signUs = 0, verifyUs = 0] = bench
    .runSync()
    .map(({ result }) => ("latency" in result ? result.latency.p50 * 1_000 : Number.NaN));
  return { signUs, verifyUs };
}

beforeSignalsEnd(() => Processes.endAll());
try {
  const loadBefore = loadavg()[0] ?? 0;
  const rows: Row[] = [];
  for (const nodes of sizes) rows.push(...(await rowsOf(nodes)));
  const cost = measureSignatures(values.quick ? 500 : 5_000);
  const counts = sizes.map((nodes) => ({ nodes, ...signaturesOfOneDecision(nodes) }));
  if (values.json) console.log(JSON.stringify({ loadBefore, rows, signatures: { ...cost, counts } }, null, 2));
  else {
    console.log(`load of the machine before: ${loadBefore.toFixed(1)}`);
    for (const nodes of sizes) {
      const title = `N = ${nodes}`;
      printRows(
        title,
        rows.filter(({ section }) => section === title),
        "pbft",
      );
    }
    console.log(`\nEd25519: ${cost.signUs.toFixed(0)} µs to sign, ${cost.verifyUs.toFixed(0)} µs to verify`);
    for (const { nodes, signed, verified } of counts) {
      const total = (signed * cost.signUs + verified * cost.verifyUs) / 1_000;
      console.log(
        `N = ${nodes}: one decision takes ${signed} signatures and ${verified} verifications, ${total.toFixed(1)} ms of processor time at all replicas together`,
      );
    }
  }
} finally {
  Processes.endAll();
}
process.exit();
