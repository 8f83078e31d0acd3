/**
 * Runs the coordination service under random faults: crashes, partitions, pauses, slow clocks, lost messages and
 * snapshots, while every member uses keys, counters, transactions and locks. Then all faults end, and the results are
 * checked.
 */

import type { NodeId } from "../../../src/core/protocol.ts";
import { type Random, random } from "../../../src/core/random.ts";
import { unwrapped } from "../../../src/core/wrapping.ts";
import type { Operation as Asked, History } from "../../../src/history/history.ts";
import {
  type CoordinationService,
  type CoordinationServiceOptions,
  coordinationService,
} from "../../../src/protocols/service/coordination-service/coordination-service.ts";
import { changeIn, changesAfter } from "../../../src/protocols/service/coordination-service/keys.ts";
import type {
  Answer,
  Change,
  Operation,
  Query,
  Result,
} from "../../../src/protocols/service/coordination-service/operations.ts";
import { valuesOf } from "../../../src/protocols/service/keyspace/table.ts";
import type { KeyEvent } from "../../../src/protocols/service/keyspace/vocabulary.ts";
import { type Simulation, simulation } from "../../../src/sim/simulation.ts";

const KEYS = ["a", "b", "c"];
const MAP = "m";
const LOCK = "l";

export interface SwarmOptions {
  seed: number;
  /**
   * Whether nodes are paused. Real processes account for pauses in their deadlines, but in virtual time the timers of a
   * paused node fire late.
   */
  pauses?: boolean;
  /** The maximum difference between clock speeds. */
  drift?: number;
  operations?: number;
  protocol?: typeof coordinationService;
}

export interface SwarmReport {
  violations: readonly string[];
  history: History;
  answered: number;
  unanswered: number;
  expired: number;
  restored: number;
  /** The errors in each node's watch. */
  gaps: readonly string[];
  /** The number of sessions that expired after all faults had ended and the cluster had had time to recover. */
  lostWrongly: number;
  keptWrongly: number;
}

interface Call {
  node: NodeId;
  f: string;
  input: Asked["input"];
  call: number;
  output: Asked["output"];
  returned: number | null;
  hasFailed: boolean;
  read: (reply: Result | Answer) => Asked["output"];
}

/** Draws one operation of the workload, for the service and for the model of the store. */
function drawn(
  draw: Random,
  value: string,
): { operation?: Operation; query?: Query; f: string; input: Asked["input"]; read: Call["read"] } {
  const key = draw.pick(KEYS);
  const other = draw.pick(KEYS.filter((each) => each !== key));
  const stored = (reply: Result | Answer) => (reply.type === "stored" ? (reply.previous?.value ?? null) : undefined);
  switch (draw.below(6)) {
    case 0:
    case 1:
      return {
        operation: { type: "put", map: MAP, key, value, isLeased: false },
        f: "put",
        input: [key, value],
        read: stored,
      };
    case 2:
      return {
        query: { type: "get", map: MAP, key },
        f: "get",
        input: key,
        read: (reply) => (reply.type === "found" ? (reply.entry?.value ?? null) : undefined),
      };
    case 3:
      return {
        operation: { type: "add", name: "n", by: 1 },
        f: "add",
        input: ["n", 1],
        read: (reply) => (reply.type === "counted" ? reply.value : undefined),
      };
    case 4: {
      const moved = value.replace(/\.\d+$/, `.${Math.max(0, Number(value.split(".")[1]) - 1)}`);
      return {
        operation: {
          type: "transaction",
          compare: [{ type: "value", map: MAP, key, value: moved }],
          success: [
            { type: "delete", map: MAP, key },
            { type: "put", map: MAP, key: other, value: moved, isLeased: false },
          ],
          failure: [],
        },
        f: "move",
        input: [key, other, moved],
        read: (reply) => (reply.type === "transaction" ? reply.succeeded : undefined),
      };
    }
    default:
      return {
        query: { type: "range", map: MAP, from: "", to: null, limit: 9 },
        f: "snapshot",
        input: KEYS,
        read: (reply) =>
          reply.type === "entries"
            ? KEYS.map((each) => reply.entries.find((entry) => entry.key === each)?.value ?? null)
            : undefined,
      };
  }
}

/** The changes that each node's watch observed: emitted changes, and changes retained in an installed snapshot. */
class Watches {
  readonly seen = new Map<NodeId, Change[]>();
  readonly problems: string[] = [];

  begin(node: NodeId): void {
    this.seen.set(node, []);
  }

  note(node: NodeId, event: { type: string } & Record<string, unknown>, sim: Simulation<CoordinationService>): void {
    const seen = this.seen.get(node) ?? [];
    const last = seen.at(-1)?.revision ?? 0;
    if (event.type === "keysChanged") seen.push(...changesIn(event));
    if (event.type !== "restored") return;
    const { data } = sim.world.state(node).replica;
    const missed = changesAfter(data, MAP, last);
    if (seen.length === 0 || missed.type !== "changes")
      this.seen.set(node, changesIn({ events: data.keyspace.history })); // The watch restarts.
    else seen.push(...missed.changes);
  }

  /** Checks that the changes of each watch are a contiguous part of the same sequence, without duplicates. */
  compare(whole: readonly Change[]): void {
    const texts = whole.map((change) => JSON.stringify(change));
    for (const [node, seen] of this.seen) {
      const own = seen.map((change) => JSON.stringify(change));
      const from = own[0] === undefined ? 0 : texts.indexOf(own[0]);
      const expected = texts.slice(from, from + own.length);
      if (JSON.stringify(own) !== JSON.stringify(expected))
        this.problems.push(`node ${node}: saw ${own.length} changes, not as they were`);
    }
  }
}

/** One run and its observations. */
class Run {
  readonly sim: Simulation<CoordinationService>;
  readonly nodes: readonly NodeId[];
  readonly calls = new Map<string, Call>();
  readonly watches = new Watches();
  readonly whole = new Map<string, Change>();
  readonly paused = new Set<NodeId>();
  settledAt = Number.POSITIVE_INFINITY;
  expired = 0;
  restored = 0;
  lostWrongly = 0;
  #request = 0;
  readonly #draw: Random;
  readonly #drift: number;

  constructor(draw: Random, { seed, pauses = false, drift = 0.04, protocol = coordinationService }: SwarmOptions) {
    this.#draw = draw;
    this.#drift = drift;
    this.nodes = Array.from({ length: draw.pick([3, 3, 5]) }, (_, node) => node);
    const service = protocol(optionsOf(draw));
    const safe = service.properties.filter(
      ({ name, when }) => when === "always" && !name.startsWith("log: ") && !(pauses && name === "no lock held twice"),
    );
    this.sim = simulation<CoordinationService>({
      protocol: { ...service, properties: safe },
      nodes: this.nodes,
      seed: seed >>> 0,
      delayMs: [1, draw.pick([5, 60, 250])],
      link: {
        lossRate: draw.pick([0, 0, 0.05, 0.2]),
        duplicateRate: draw.pick([0, 0.1]),
        order: draw.pick(["fifo", "none"]),
      },
      syncMs: 2,
      onEvent: (at, node, emitted) => this.#note(at, node, unwrapped(emitted)),
    });
  }

  #note(at: number, node: NodeId, event: { type: string } & Record<string, unknown>): void {
    this.watches.note(node, event, this.sim);
    if (event.type === "keysChanged")
      for (const change of changesIn(event)) this.whole.set(JSON.stringify([change.revision, change.key]), change);
    if (event.type === "restored") this.restored += 1;
    if (event.type !== "ended" || event.reason !== "expired") return;
    this.expired += 1;
    if (at > this.settledAt) this.lostWrongly += 1;
  }

  start(node: NodeId): void {
    this.watches.begin(node);
    this.sim.start(node);
    this.sim.clockRate(node, this.#draw.between(1 - this.#drift, 1 + this.#drift));
  }

  ask(node: NodeId, { operation, query, ...call }: ReturnType<typeof drawn>): void {
    this.#request += 1;
    const [request, sim] = [this.#request, this.sim];
    const body = operation === undefined ? { type: "query", request, query } : { type: "submit", request, operation };
    const open = { call: sim.now, output: undefined, returned: null, hasFailed: false };
    this.calls.set(`${node}.${request}`, { node, ...call, ...open });
    sim.command(node, { type: "session", body } as never);
  }

  #collect(): void {
    for (const node of this.sim.world.alive)
      for (const { request: of, reply } of this.sim.replies(node).slice(-20)) {
        const call = this.calls.get(`${node}.${of}`);
        if (call === undefined || call.returned !== null) continue;
        const { body } = reply as { body: { type: string; result?: Result; answer?: Answer; code?: string } };
        call.returned = this.sim.now;
        call.hasFailed = body.type === "refused" && body.code !== "outcome-unknown";
        const result = body.result ?? body.answer;
        if (result !== undefined) call.output = call.read(result);
      }
  }

  go(ms: number): void {
    const end = this.sim.now + ms;
    while (this.sim.now < end) {
      this.sim.run(Math.min(end, this.sim.now + 5));
      this.#collect();
    }
  }

  /** Acquires the lock, or releases the node's grant. */
  lock(node: NodeId): void {
    const { session, replica } = this.sim.world.state(node);
    const held = valuesOf(replica.data.locks)[0]?.holders.find((holder) => holder.session === session.session);
    this.#request += 1;
    const mode = this.#draw.pick(["exclusive", "shared"] as const);
    const operation: Operation =
      held === undefined
        ? { type: "acquire", name: LOCK, wait: this.#request, mode, permits: 1, capacity: 2, note: "" }
        : { type: "release", name: LOCK, token: held.token };
    this.sim.command(node, { type: "session", body: { type: "submit", request: this.#request, operation } });
  }

  fault(pauses: boolean): void {
    const { sim, nodes, paused } = this;
    const [draw, drift] = [this.#draw, this.#drift];
    const node = draw.pick(nodes);
    const isAlive = sim.world.alive.includes(node);
    switch (draw.below(pauses ? 8 : 7)) {
      case 0:
        if (isAlive) sim.crash(node, { journal: "synced" });
        else this.start(node);
        return void paused.delete(node);
      case 1:
        return isAlive ? undefined : this.start(node);
      case 2:
        return sim.partition([[node]]);
      case 3:
        return sim.partition([nodes.filter(() => draw.below(2) === 0)].filter((side) => side.length > 0));
      case 4:
        return sim.heal();
      case 5:
        return sim.cut(node, draw.pick(nodes.filter((each) => each !== node)));
      case 6:
        return isAlive ? sim.clockRate(node, draw.between(1 - drift, 1 + drift)) : undefined;
      default:
        if (!isAlive) return;
        if (paused.delete(node)) return sim.resume(node);
        paused.add(node);
        return sim.pause(node);
    }
  }

  mend(): void {
    const { sim, nodes, paused } = this;
    for (const node of paused) sim.resume(node);
    sim.heal();
    for (const node of nodes)
      for (const other of nodes)
        if (other !== node) sim.setLink(node, other, { lossRate: 0, duplicateRate: 0, delay: 5 });
    for (const node of nodes) if (!sim.world.alive.includes(node)) this.start(node);
  }

  report(): SwarmReport {
    const order = [...this.whole.values()];
    // A stable sort keeps the order within a revision.
    this.watches.compare(order.sort((a, b) => a.revision - b.revision));
    const calls = [...this.calls.values()];
    return {
      violations: this.sim.verdict().map(({ property }) => property),
      history: historyOf(calls),
      answered: calls.filter(({ returned }) => returned !== null).length,
      unanswered: calls.filter(({ returned, call }) => returned === null && call >= this.settledAt).length,
      expired: this.expired,
      restored: this.restored,
      gaps: this.watches.problems,
      lostWrongly: this.lostWrongly,
      keptWrongly: sessionsOfTheDead(this.sim),
    };
  }
}

const optionsOf = (draw: Random): CoordinationServiceOptions => ({
  session: { leaseMs: 1_000, renewMs: 250, sweepMs: 200, retryMs: 200, idleMs: 1_500, maxUnderWay: draw.pick([1, 4]) },
  replica: {
    snapshotChars: draw.pick([300, 2_000, 1_000_000]),
    chunkChars: draw.pick([200, 262_144]),
    maxHistoryBytes: draw.pick([1_000, 1_000_000]),
  },
  log: { keptEntries: draw.pick([0, 8]), maxBatchEntries: draw.pick([1, 64]) },
});

export function swarm(options: SwarmOptions): SwarmReport {
  const { seed, pauses = false, operations = 60 } = options;
  const draw = random(seed).stream("swarm");
  const run = new Run(draw, options);
  for (const node of run.nodes) run.start(node);
  run.go(draw.pick([0, 1_500]));
  for (let step = 0; step < operations; step++) {
    const node = draw.pick(run.nodes);
    if (run.sim.world.alive.includes(node)) {
      if (draw.below(4) === 0) run.lock(node);
      else run.ask(node, drawn(draw, `${node}.${step}`));
    }
    if (draw.below(6) === 0) run.fault(pauses);
    run.go(draw.pick([0, 5, 30, 200, 600]));
  }
  run.mend();
  run.go(8_000);
  run.settledAt = run.sim.now;
  for (const node of run.nodes) run.ask(node, drawn(draw, `${node}.${operations}`));
  run.go(4_000);
  return run.report();
}

/** Returns the changes to maps in an event of a replica. */
const changesIn = (event: Record<string, unknown>): Change[] =>
  (event.events as KeyEvent[]).flatMap((each) => changeIn(each) ?? []);

/** Returns the number of sessions in the log that no member considers its own. */
function sessionsOfTheDead(sim: Simulation<CoordinationService>): number {
  const [first = 0] = sim.world.alive;
  return sim.world.state(first).replica.data.sessions.filter(({ member, life }) => {
    const { session } = sim.world.state(member);
    return session.life !== life || session.phase === "none";
  }).length;
}

const historyOf = (calls: readonly Call[]): History => ({
  operations: calls
    .filter(({ hasFailed }) => !hasFailed)
    .map(({ node, f, input, output, call, returned }, at) => ({
      process: `${node}.${at}`,
      f,
      key: undefined,
      input,
      output,
      call,
      return: output === undefined ? null : returned,
      line: null,
    })),
  remarks: [],
});
