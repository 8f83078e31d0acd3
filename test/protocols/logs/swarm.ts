/**
 * Runs any replicated log under random faults. Clients at every node send random requests. Properties are checked after
 * every step. After all faults have ended, every request must be answered within a bound of virtual time, and all state
 * machines must become equal.
 */

import { canonical } from "../../../src/core/plain.ts";
import type { EventOf, NodeId, Protocol } from "../../../src/core/protocol.ts";
import { type Random, random } from "../../../src/core/random.ts";
import { checkLinearizability } from "../../../src/history/index.ts";
import { type Machine, type MachineKind, machineKinds } from "../../../src/protocols/consensus/family/machine.ts";
import type { ReplicatedLog } from "../../../src/protocols/consensus/family/replicated-log.ts";
import { type CrashFate, type LinkModel, type Simulation, simulation } from "../../../src/sim/index.ts";
import { type AnyReplica, Clients } from "./clients.ts";
import { type Fault, faultPlan } from "./fault-plan.ts";
import { machineModel } from "./machine-model.ts";
import { type Reached, Tally } from "./reached.ts";

export interface Drawn {
  /** Options of the log. */
  readonly log: object;
  /** Options of the state machine. */
  readonly machine?: object;
  /** The range of clock speeds that these options allow. */
  readonly clocks: readonly [least: number, most: number];
  /** Whether nodes may be paused. Defaults to true. */
  readonly pauses?: boolean;
}

export interface LogUnderTest {
  readonly name: string;
  /** The whole system: client, machine and log. */
  readonly make: (options: { machine: object; client: object; log: object }) => Protocol<AnyReplica>;
  readonly nodes: number;
  /** The number of nodes, from the first one, that have clients and state machines. The others only support the log. */
  readonly replicas?: number;
  draw(chance: Random): Drawn;
  /** Set if the log needs links that lose nothing and keep their order. */
  readonly needsReliableLinks?: true;
}

export interface SwarmResult {
  readonly operations: number;
  readonly acknowledged: number;
  readonly faults: number;
  /** The consequences of the faults. */
  readonly reached: Reached;
  /** The time from the end of all faults until every request was answered and all state machines were equal. */
  readonly wellAfterMs: number;
  /** The number of operations that the history checker tried. */
  readonly steps: number;
}

const FAULTS_MS = 3_000;
/**
 * The maximum recovery time after all faults have ended. In 20,000 runs of Raft and Multi-Paxos, recovery never took 5
 * s.
 */
const WELL_WITHIN_MS = 10_000;
/** The interval for checking recovery and for repeating the request that all nodes become voters. */
const LOOKS_EVERY_MS = 100;
const ASKS_EVERY_LOOKS = 5;
/** The limit on steps of the history checker. */
const MAX_STEPS = 2_000_000;

interface Planned {
  readonly at: number;
  readonly act: () => void;
}

class Swarm {
  readonly #sim: Simulation<AnyReplica>;
  readonly #nodes: readonly NodeId[];
  readonly #replicas: readonly NodeId[];
  readonly #clients: Clients;
  readonly #plan: Fault[];
  readonly #kind: MachineKind;
  readonly #link: LinkModel;
  readonly #due: Planned[] = [];
  /** Nodes that will crash within a step, at their next event. */
  readonly #striking = new Map<NodeId, { fate: CrashFate; forMs: number }>();
  /** The voters that each node last reported in its current incarnation. Initially all nodes are voters. */
  readonly #voters = new Map<NodeId, readonly NodeId[]>();
  readonly #tally: Tally;
  #hasOtherMembers = false;

  constructor({ make, nodes, replicas = nodes, draw, needsReliableLinks = undefined }: LogUnderTest, seed: number) {
    const chance = random(seed);
    const { log, machine, clocks, pauses = true } = draw(chance.stream("options"));
    const setting = chance.stream("setting");
    this.#nodes = Array.from({ length: nodes }, (_, i) => i);
    this.#replicas = this.#nodes.slice(0, replicas);
    this.#tally = new Tally(this.#nodes);
    this.#kind = machineKinds[seed % machineKinds.length] as MachineKind;
    this.#link = linkModel(setting, needsReliableLinks === true);
    const protocol = make({
      machine: { kind: this.#kind, snapshotEvery: setting.pick([0, 1, 3, 10]), ...machine },
      client: { retryMs: setting.pick([100, 300, 1_000]) },
      log,
    });
    const commands = commandsOf(protocol);
    const wanted = {
      nodes: this.#nodes,
      forMs: FAULTS_MS,
      clocks,
      hasMembers: commands.includes("reconfigure"),
      hasTransfer: commands.includes("transfer"),
      hasPauses: pauses,
    };
    this.#plan = faultPlan(wanted, chance.stream("plan"));
    this.#sim = simulation({
      protocol,
      nodes: this.#nodes,
      seed,
      delayMs: this.#link.delay,
      link: this.#link,
      syncMs: setting.pick([0, 5, 50]),
      properties: "every step",
      onEvent: (_at, node, event) => this.#happened(node, event),
    });
    this.#clients = new Clients(this.#sim, this.#replicas, this.#kind, chance.stream("clients"));
  }

  run(): SwarmResult {
    for (const node of this.#nodes) this.#start(node);
    for (const fault of this.#plan) this.#at(fault.at, () => this.#begin(fault));
    this.#until(FAULTS_MS);
    this.#mendAll();
    const mendedAt = this.#sim.now;
    this.#endsWell(mendedAt);
    const wellAfterMs = this.#sim.now - mendedAt;
    const steps = this.#judge();
    const { history } = this.#clients;
    const acknowledged = history.filter((operation) => operation.return !== null).length;
    const reached = { ...this.#tally.reached, lostRecords: this.#sim.lostRecords };
    return { operations: history.length, acknowledged, faults: this.#plan.length, reached, wellAfterMs, steps };
  }

  // Scheduling.

  #at(at: number, act: () => void): void {
    const before = this.#due.findLastIndex((each) => each.at <= at);
    this.#due.splice(before + 1, 0, { at, act });
  }

  #after(ms: number, act: () => void): void {
    this.#at(this.#sim.now + ms, act);
  }

  #until(endMs: number): void {
    for (;;) {
      const [next] = this.#due;
      const at = Math.min(next?.at ?? endMs, this.#clients.nextAt, endMs);
      while (this.#sim.step(at)) this.#look();
      this.#sim.run(at);
      if (next !== undefined && next.at <= at) {
        this.#due.shift();
        next.act();
      } else if (this.#clients.nextAt <= at) this.#clients.ask();
      else return;
      this.#look();
    }
  }

  #look(): void {
    const [violation] = this.#sim.violations;
    if (violation !== undefined)
      throw new Error(`at ${violation.at.toFixed(3)} ms “${violation.property}” is violated: ${violation.claim}`);
    this.#clients.hear();
  }

  // Faults.

  #begin(fault: Fault): void {
    switch (fault.kind) {
      case "crash":
        if (!fault.withinStep) return this.#crash(fault.node, fault.fate, fault.forMs);
        return void this.#striking.set(fault.node, fault);
      case "blackout":
        for (const node of this.#nodes) this.#crash(node, fault.fate, fault.forMs);
        return;
      case "pause":
        return this.#pause(fault.node, fault.forMs);
      case "groups":
        this.#sim.partition(fault.groups);
        return this.#after(fault.forMs, () => this.#sim.partition([this.#nodes]));
      case "shape":
        this.#sim.partitionShape(fault.shape);
        return this.#after(fault.forMs, () => this.#sim.partition([this.#nodes]));
      case "cut":
        for (const [from, to] of fault.links) this.#sim.cut(from, to);
        return this.#after(fault.forMs, () => {
          for (const [from, to] of fault.links) this.#sim.mend(from, to);
        });
      default:
        return this.#disturb(fault);
    }
  }

  #disturb(fault: Exclude<Fault, { kind: "crash" | "blackout" | "pause" | "groups" | "shape" | "cut" }>): void {
    switch (fault.kind) {
      case "bad-link":
        this.#sim.setLink(fault.from, fault.to, { ...fault.model, order: "none" });
        return this.#after(fault.forMs, () => this.#sim.setLink(fault.from, fault.to, this.#link));
      case "clock":
        this.#sim.clockRate(fault.node, fault.rate);
        return this.#after(fault.forMs, () => this.#sim.clockRate(fault.node, 1));
      case "members":
        this.#hasOtherMembers = true;
        return this.#tellAll({ type: "reconfigure", voters: [...fault.voters], learners: [...fault.learners] });
      case "transfer":
        return this.#tellAll({ type: "transfer", to: fault.to });
    }
  }

  #start(node: NodeId): void {
    if (this.#isUp(node)) return;
    // Notify the client first: the node may crash again during its start.
    if (this.#replicas.includes(node)) this.#clients.started(node);
    this.#voters.delete(node);
    this.#tally.starts(node);
    this.#sim.start(node);
    this.#tally.runs();
  }

  #crash(node: NodeId, fate: CrashFate, forMs: number): void {
    if (!this.#isUp(node)) return;
    this.#sim.crash(node, fate);
    this.#tally.crashes();
    this.#paused.delete(node);
    if (this.#replicas.includes(node)) this.#clients.crashed(node);
    this.#after(forMs, () => this.#start(node));
  }

  #pause(node: NodeId, forMs: number): void {
    if (!this.#isUp(node) || this.#paused.has(node)) return;
    this.#sim.pause(node);
    this.#paused.add(node);
    this.#after(forMs, () => this.#resume(node));
  }
  readonly #paused = new Set<NodeId>();

  #resume(node: NodeId): void {
    if (!this.#paused.delete(node) || !this.#isUp(node)) return;
    this.#sim.resume(node);
  }

  /** Sends the command to all nodes, because the leader is unknown. */
  #tellAll(body: ReplicatedLog["command"]): void {
    for (const node of this.#nodes) if (this.#isUp(node)) this.#sim.command(node, { type: "log", body });
  }

  #happened(node: NodeId, event: EventOf<AnyReplica>): void {
    this.#tally.happened(node, event);
    const { type, body } = event;
    if (type === "log" && body.type === "reconfigured") this.#voters.set(node, body.voters);
    const strike = this.#striking.get(node);
    if (strike === undefined) return;
    this.#striking.delete(node);
    this.#crash(node, strike.fate, strike.forMs);
  }

  #isUp(node: NodeId): boolean {
    return this.#sim.world.alive.includes(node);
  }

  // The end of a run.

  #mendAll(): void {
    this.#striking.clear();
    this.#due.length = 0;
    this.#sim.heal();
    for (const node of this.#paused) this.#resume(node);
    for (const from of this.#nodes) {
      this.#start(from);
      this.#sim.clockRate(from, 1);
      for (const to of this.#nodes) if (to !== from) this.#sim.setLink(from, to, { ...this.#link, lossRate: 0 });
    }
  }

  #endsWell(mendedAt: number): void {
    const lastOf = (node: NodeId): string =>
      ({ map: `put ${node} last`, counter: "add 1", log: `append last of ${node}` })[this.#kind];
    this.#clients.end(lastOf);
    for (let looks = 0; !this.#isWell(); looks++) {
      if (this.#sim.now > mendedAt + WELL_WITHIN_MS) throw new Error(this.#unwell());
      if (this.#hasOtherMembers && looks % ASKS_EVERY_LOOKS === 0)
        this.#tellAll({ type: "reconfigure", voters: [...this.#nodes], learners: [] });
      this.#until(this.#sim.now + LOOKS_EVERY_MS);
    }
  }

  #isWell(): boolean {
    if (!this.#clients.areDone || !this.#allVote) return false;
    return this.#areEqual && this.#sim.verdict().length === 0;
  }

  get #areEqual(): boolean {
    return new Set(this.#replicas.map((node) => this.#contents(node))).size === 1;
  }

  /** Whether every node knows all nodes as voters. */
  get #allVote(): boolean {
    return !this.#hasOtherMembers || [...this.#voters.values()].every(({ length }) => length === this.#nodes.length);
  }

  #contents(node: NodeId): string {
    const { data, sessions, digest } = this.#machine(node);
    return canonical({ data, sessions, digest });
  }

  #machine(node: NodeId): Machine["state"] {
    return this.#sim.world.state(node).machine;
  }

  #unwell(): string {
    const within = `within ${WELL_WITHIN_MS} ms after all faults were repaired`;
    if (!this.#clients.areDone) return `expected an answer ${within} to ${this.#clients.waiting}`;
    if (!this.#allVote)
      return `expected all nodes to be voters ${within}, got ${[...this.#voters.values()].map((voters) => voters.join(", ")).join(" and ")}`;
    const [first] = this.#sim.verdict();
    if (this.#areEqual && first !== undefined) return `expected “${first.property}” to hold ${within}: ${first.claim}`;
    return `expected all machines to be equal ${within}, got ${this.#replicas.map((node) => this.#contents(node)).join(" and ")}`;
  }

  /** @returns the number of operations that the history checker tried */
  #judge(): number {
    const { history, acknowledgedAdds } = this.#clients;
    const operations = history.toSorted((a, b) => a.call - b.call);
    const { sum = 0, entries = [] } = this.#machine(0).data as { sum?: number; entries?: string[] };
    const model = machineModel(this.#kind, entries);
    const { verdict, steps } = checkLinearizability({ operations, remarks: [] }, model, { maxSteps: MAX_STEPS });
    if (verdict !== "holds")
      throw new Error(`expected the history to be linearizable, got ${verdict} after ${steps} steps`);
    if (this.#kind !== "counter") return steps;
    const open = history.filter((operation) => operation.return === null && operation.f === "add").length;
    if (sum < acknowledgedAdds || sum > acknowledgedAdds + open)
      throw new Error(`expected a sum from ${acknowledgedAdds} to ${acknowledgedAdds + open}, got ${sum}`);
    return steps;
  }
}

/** @throws Error if a run fails, with a command that repeats it */
export function swarm(log: LogUnderTest, seed: number): SwarmResult {
  try {
    return new Swarm(log, seed).run();
  } catch (error) {
    const { name } = log;
    const replay = `COTERIE_SEED=${seed} npx vitest run --project unit test/protocols/logs/swarm.test.ts -t '^${name} .* is linearizable'`;
    throw new Error(`${name}, seed ${seed}: ${(error as Error).message}\n  ${replay}`, { cause: error });
  }
}

function linkModel(chance: Random, isReliable: boolean): LinkModel {
  const delay = chance.pick([1, [1, 5], [1, 30], [5, 10]] as const);
  if (isReliable) return { delay, lossRate: 0, duplicateRate: 0, order: "fifo", bytesPerMs: Number.POSITIVE_INFINITY };
  return {
    delay,
    lossRate: chance.pick([0, 0, 0.02]),
    duplicateRate: chance.pick([0, 0.05]),
    order: chance.pick(["fifo", "none"]),
    bytesPerMs: Number.POSITIVE_INFINITY,
  };
}

/** Returns the types of commands that the part `log` accepts. */
function commandsOf({ shapes }: Protocol<AnyReplica>): string[] {
  const { log } = shapes.command as unknown as { log?: { body: { variants: object } } };
  return Object.keys(log?.body.variants ?? {});
}
