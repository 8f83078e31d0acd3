/**
 * The deterministic simulator, which runs the same handlers as real processes but in virtual time. Equal options give
 * exactly equal runs, byte for byte. A crash loses the node's state, its timers and the messages in flight to it, but
 * by default not its journal. By default, properties are evaluated after every step and every loss.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { clone } from "../core/plain.ts";
import type { CommandOf, EventOf, NodeId, Protocol, StateOf, Vocabulary, World } from "../core/protocol.ts";
import { type Random, random } from "../core/random.ts";
import { requirePlainState } from "../driver/repetition.ts";
import type { Answer } from "../driver/requests.ts";
import { byzantine } from "../protocols/byzantine.ts";
import { ALL_MENDED, type LinkModel, linkChanged, linkCut, linkMended, reaches } from "../trace/link-model.ts";
import type { NodeSnapshot, Snapshot } from "../trace/snapshot.ts";
import { PropertyWatcher } from "../trace/watcher.ts";
import { type CrashFate, damageJournal } from "./journal.ts";
import { Kernel } from "./kernel.ts";
import { intoGroups, intoShape, type PartitionShape, type Separation } from "./links.ts";
import { requireSimulationOptions, type SimulationOptions } from "./options.ts";
import type { SimulatedNode } from "./simulated-node.ts";

/** A violated property. */
export interface Violation {
  /** The name of the property. */
  readonly property: string;
  /** The property's claim, as a sentence. */
  readonly claim: string;
  /** When the violation was detected, in virtual milliseconds. */
  readonly at: number;
  /** For a `leadsTo` property, the node that has waited longest, and when its wait began. */
  readonly waiting?: { readonly node: NodeId; readonly since: number };
}

/** A running simulation. */
export interface Simulation<V extends Vocabulary> {
  /** The virtual time since the start, in milliseconds. */
  readonly now: number;
  /** The current states of the nodes, as properties see them. */
  readonly world: World<StateOf<V>>;
  /** The messages sent so far, including messages to crashed nodes but not messages from a node to itself. */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** The number of datagrams needed for these messages if one datagram reached all nodes, as with IP multicast. */
  readonly datagrams: number;
  /** The number of message copies that did not arrive, because they were lost in transit or their receiver was down. */
  readonly lost: number;
  /** The number of journal records that were lost in crashes because they were not durable. */
  readonly lostRecords: number;
  /** Whether no more events can occur without outside input. */
  readonly isOver: boolean;
  /**
   * Names of the properties that have been seen to apply: `sometimes` properties that came true, and `quiescent`
   * properties that were evaluated in a quiescent state.
   */
  readonly seen: ReadonlySet<string>;
  /** The first violation of each property. */
  readonly violations: readonly Violation[];
  /** Returns the events that a node has emitted since its last start. */
  events(node: NodeId): readonly EventOf<V>[];
  /** Returns a node's replies since its last start to commands that carry a `request`. */
  replies(node: NodeId): readonly Answer<V>[];
  /**
   * Returns the violations so far, along with the properties that are currently unfulfilled: `eventually` properties
   * and open `leadsTo` obligations.
   */
  verdict(): readonly Violation[];
  /** Makes a node alive without running `start`, as if it had already been running idly. */
  wake(node: NodeId): void;
  /**
   * Starts a node. If it has crashed, it restarts and first replays its journal.
   * @throws EnvironmentError if its journal is damaged. The node then stays down.
   */
  start(node: NodeId): void;
  /**
   * Crashes a node. Its journal is kept unless `fate` specifies otherwise. If an entry or event listener calls this
   * while the node is taking a step, the rest of the step is not executed.
   * @throws UsageError if the fate is unknown
   */
  crash(node: NodeId, fate?: CrashFate): void;
  /** Pauses a node: messages, timers and commands are queued in order and are handled when the node resumes. */
  pause(node: NodeId): void;
  /**
   * Ends a pause. The node then handles everything that was queued during the pause.
   *
   * @throws UsageError `node-running` if it is not paused
   */
  resume(node: NodeId): void;
  /** Sets the speed of the node's clock relative to the other nodes. This also affects running timers. */
  clockRate(node: NodeId, rate: number): void;
  /**
   * Gives a command to a node. The node handles it immediately, or as soon as it is no longer paused or busy.
   *
   * @throws UsageError `node-down` if it has crashed; `no-handler` if the protocol has no such command
   */
  command(node: NodeId, command: CommandOf<V>): void;
  /** Drops later messages from `from` to `to`. Messages already in flight still arrive. */
  cut(from: NodeId, to: NodeId): void;
  /** Ends a `cut` of this link. */
  mend(from: NodeId, to: NodeId): void;
  /** Drops later messages between groups. Nodes that are not in any group form a group of their own. */
  partition(groups: readonly (readonly NodeId[])[]): void;
  /** Drops later messages as defined by the shape. */
  partitionShape(shape: PartitionShape): void;
  /** Mends all cuts and ends the partition. */
  heal(): void;
  /** Changes a link's model. Fields that are omitted keep their values. */
  setLink(from: NodeId, to: NodeId, model: Partial<LinkModel>): void;
  /** Handles the next event. Returns false if there is none, or none by `untilMs`. */
  step(untilMs?: number): boolean;
  /**
   * Runs until no events are left, or until `untilMs`. Afterwards, the clock is at `untilMs` if it is given.
   * @throws UsageError if the run does not end and no time is given
   */
  run(untilMs?: number): void;
  /**
   * Starts from a snapshot. Messages in flight keep their ids but get new delays.
   * @throws UsageError if the simulation has already begun, or if the snapshot has different nodes
   */
  adopt(snapshot: Snapshot<V>): void;
}

/**
 * Creates a simulation.
 *
 * @example
 * const sim = simulation({ protocol: bully(), nodes: [1, 2, 3], seed: 7, delayMs: [5, 20] });
 * for (const node of [1, 2, 3]) sim.wake(node);
 * sim.command(1, { type: "call" });
 * sim.run();
 * console.log(sim.events(1), sim.verdict()); // [{ type: "elected", leader: 3 }] []
 * @throws UsageError if an option is invalid
 */
export function simulation<V extends Vocabulary>(options: SimulationOptions<V>): Simulation<V> {
  requireSimulationOptions(options);
  return new KernelSimulation(options);
}

/**
 * The maximum number of events in a run without `untilMs`. A run that exceeds it has periodic timers and never becomes
 * quiescent.
 */
const MAX_HAPPENINGS = 10_000_000;
const MAX_HAPPENINGS_PER_NODE = 1_000;

/**
 * Returns a function to call at each event in a run that ends at `untilMs`. It throws a UsageError if a run without an
 * end has too many events.
 */
export function patience(
  nodes: number,
  untilMs: number,
  most = Math.max(MAX_HAPPENINGS, MAX_HAPPENINGS_PER_NODE * nodes),
): () => void {
  let left = untilMs === Number.POSITIVE_INFINITY ? most : Number.POSITIVE_INFINITY;
  return () => {
    if (left-- > 0) return;
    const remedy = "set when it ends, with until in a scenario, --until on the command line or run(untilMs) in code";
    throw new UsageError(
      "no-rest",
      `expected the run to become idle within ${most} events, but it continues: ${remedy}`,
    );
  };
}

/** A future event, with its order among simultaneous events. */
interface Planned {
  readonly order: number;
  readonly plan: () => void;
}

/** A number that no incarnation has. Incarnations are numbered from 0. */
const NO_LIFE = -1;

/** The public interface of a kernel. */
class KernelSimulation<V extends Vocabulary> implements Simulation<V> {
  readonly world: World<StateOf<V>>;
  readonly #protocol: Protocol<V>;
  readonly #kernel: Kernel<V>;
  readonly #watch: PropertyWatcher<V>;
  readonly #faults: Random;

  constructor(options: SimulationOptions<V>) {
    const { byzantine: liars, seed } = options;
    this.#protocol = liars === undefined ? options.protocol : byzantine(options.protocol, liars);
    const kernel = new Kernel<V>(this.#protocol, options);
    this.#kernel = kernel;
    this.world = kernel.population.world;
    const watch = new PropertyWatcher(kernel.histories.shown(this.#protocol.properties), this.world, (pendingTimers) =>
      kernel.isQuiescent(pendingTimers),
    );
    this.#watch = watch;
    this.#faults = random(seed).stream("faults");
    if (options.properties !== "at the end") kernel.afterChange = () => watch.look(kernel.now);
    kernel.fall = (node) => {
      const fate = node.struck as CrashFate;
      node.struck = null;
      this.#fall(node, fate, { withinStep: true });
    };
  }

  get now(): number {
    return this.#kernel.now;
  }

  get messages(): Simulation<V>["messages"] {
    const { total, byType } = this.#kernel.sent;
    return { total, byType };
  }

  get datagrams(): number {
    const { total, broadcasts } = this.#kernel.sent;
    return total - broadcasts * (this.#ids.length - 1) + broadcasts;
  }

  get lost(): number {
    return this.#kernel.lost;
  }

  get lostRecords(): number {
    return this.#kernel.lostRecords;
  }

  get isOver(): boolean {
    return this.#kernel.isOver;
  }

  get seen(): ReadonlySet<string> {
    return this.#watch.seen;
  }

  get violations(): readonly Violation[] {
    return [...this.#watch.violations].map(([{ name, claim }, at]) => ({ property: name, claim, at }));
  }

  events(id: NodeId): readonly EventOf<V>[] {
    return this.#node(id).events ?? [];
  }

  replies(id: NodeId): readonly Answer<V>[] {
    return this.#node(id).replies ?? [];
  }

  verdict(): readonly Violation[] {
    const watch = this.#watch;
    const at = this.now;
    watch.look(at);
    const unmet = watch.properties.filter((property) => property.when === "eventually" && watch.isBroken(property));
    const waiting = watch.properties.flatMap((property) => {
      const first = watch.waiting(property);
      return first === null ? [] : [{ property: property.name, claim: property.claim, at, waiting: first }];
    });
    return [...this.violations, ...unmet.map(({ name, claim }) => ({ property: name, claim, at })), ...waiting];
  }

  wake(id: NodeId): void {
    this.#boot(id, { idle: true });
  }

  start(id: NodeId): void {
    this.#kernel.start(this.#boot(id, {}));
  }

  crash(id: NodeId, fate: CrashFate = { journal: "kept" }): void {
    const node = this.#aliveNode(id);
    if (this.#kernel.stepping === node) node.struck = fate;
    else this.#fall(node, fate, {});
  }

  pause(id: NodeId): void {
    const node = this.#aliveNode(id);
    if (node.isPaused) throw new UsageError("node-paused", `expected node ${id} to be running, but it is paused`);
    node.isPaused = true;
    this.#kernel.record({ at: this.now, node: id, kind: "pause" });
  }

  resume(id: NodeId): void {
    const node = this.#aliveNode(id);
    if (!node.isPaused) throw new UsageError("node-running", `expected node ${id} to be paused, but it is running`);
    node.isPaused = false;
    this.#kernel.record({ at: this.now, node: id, kind: "resume" });
    if (!node.isBusy && this.#kernel.hasWaiting(node)) this.#kernel.occupy(node, 0);
  }

  clockRate(id: NodeId, rate: number): void {
    if (!(Number.isFinite(rate) && rate > 0))
      throw new UsageError("bad-rate", unexpected("the clock rate", "a finite number > 0", rate));
    const node = this.#node(id);
    for (const [timer, { at }] of [...(node.armed ?? [])])
      this.#kernel.arm(node, timer, this.now + (Math.max(0, at - this.now) * node.rate) / rate);
    node.rate = rate;
    this.#kernel.recordFault(node, () => `clock at ${rate} times the speed`);
  }

  command(id: NodeId, command: CommandOf<V>): void {
    this.#kernel.command(this.#aliveNode(id), command);
  }

  cut(from: NodeId, to: NodeId): void {
    this.#kernel.network.cut(this.#node(from), this.#node(to));
    this.#kernel.recordFault(this.#node(from), () => linkCut(to));
  }

  mend(from: NodeId, to: NodeId): void {
    this.#kernel.network.mend(this.#node(from), this.#node(to));
    this.#kernel.recordFault(this.#node(from), () => linkMended(to));
  }

  partition(groups: readonly (readonly NodeId[])[]): void {
    this.#separate(intoGroups(this.#ids.length, groups, (id) => this.#node(id).place));
  }

  partitionShape(shape: PartitionShape): void {
    this.#separate(intoShape(this.#ids.length, shape, (id) => this.#node(id).place));
  }

  heal(): void {
    this.#kernel.network.heal();
    for (const node of this.#nodes) this.#kernel.recordFault(node, () => ALL_MENDED);
  }

  setLink(from: NodeId, to: NodeId, model: Partial<LinkModel>): void {
    const [sender, receiver] = [this.#node(from), this.#node(to)];
    this.#kernel.network.setLink(sender, receiver, model, this.#kernel.latestArrival(sender, receiver));
    this.#kernel.recordFault(sender, () => linkChanged(to, model));
  }

  step(untilMs = Number.POSITIVE_INFINITY): boolean {
    return this.#kernel.step(untilMs);
  }

  run(untilMs = Number.POSITIVE_INFINITY): void {
    const kernel = this.#kernel;
    const happened = patience(this.#nodes.length, untilMs);
    while (kernel.step(untilMs)) happened();
    if (Number.isFinite(untilMs)) kernel.now = Math.max(kernel.now, untilMs);
  }

  adopt(snapshot: Snapshot<V>): void {
    const { at, inFlight, idMark } = snapshot;
    if (this.now !== 0 || this.world.alive.length > 0)
      throw new UsageError("begun", "expected a simulation that has not run yet to load a snapshot");
    const known = snapshot.nodes.map(({ id }) => id);
    if (known.length !== this.#ids.length || known.some((id) => !this.#ids.includes(id)))
      throw new UsageError("other-nodes", unexpected("the snapshot's nodes", this.#ids.join(", "), known));
    this.#kernel.continueFrom(at, idMark);
    const planned: Planned[] = [];
    for (const each of snapshot.nodes) planned.push(...this.#adoptNode(each));
    for (const { id, from, to, message, delayMs, isDoomed, order = Infinity } of inFlight) {
      const receiver = this.#node(to);
      const life = isDoomed === true ? NO_LIFE : receiver.incarnation;
      const link = this.#kernel.network.link(this.#node(from), receiver);
      const arrival = link.arrival(message, at, delayMs ?? link.carrier.travel());
      planned.push({ order, plan: () => this.#kernel.carry(receiver, from, id, message, arrival, life) });
    }
    // Infinity minus itself is NaN, which cannot be used for sorting.
    for (const { plan } of planned.toSorted((a, b) => (a.order === b.order ? 0 : a.order - b.order))) plan();
  }

  get #ids(): readonly NodeId[] {
    return this.#kernel.population.ids;
  }

  get #nodes(): readonly SimulatedNode<V>[] {
    return this.#kernel.population.nodes;
  }

  #node(id: NodeId): SimulatedNode<V> {
    return this.#kernel.population.node(id);
  }

  #aliveNode(id: NodeId): SimulatedNode<V> {
    return this.#kernel.population.aliveNode(id);
  }

  /** Boots a node. `idle`: the node behaves as if it had always been up, so `start` does not run. */
  #boot(id: NodeId, idle: { idle?: true }): SimulatedNode<V> {
    const node = this.#node(id);
    if (node.state !== undefined) throw new UsageError("node-up", `expected node ${id} to be down, but it is alive`);
    const state = this.#protocol.init(id, this.#kernel.peers(node));
    requirePlainState(state, id, "after init");
    for (const record of node.journal?.replay(id) ?? []) this.#kernel.run(node, state, { kind: "replay", record });
    this.#kernel.population.setState(node, state);
    // Messages sent while the node was down do not reach it after the restart either.
    if (node.incarnation > 0) node.incarnation += 1;
    node.events = null;
    node.replies = null;
    this.#kernel.record({ at: this.now, node: id, kind: "start", ...idle });
    return node;
  }

  #fall(node: SimulatedNode<V>, fate: CrashFate, how: { withinStep?: true }): void {
    const kernel = this.#kernel;
    kernel.requireBetweenSteps();
    const id = node.self;
    const damage = node.journal === null ? null : damageJournal(node.journal, fate, kernel.now, this.#faults);
    kernel.population.setState(node, undefined);
    for (const request of node.requests?.keys() ?? []) node.requests?.set(request, "past");
    node.incarnation += 1;
    for (const timer of node.armed?.keys() ?? []) kernel.cancelTimer(node, timer);
    node.view = null;
    node.isPaused = false;
    node.isBusy = false;
    this.#watch.forget(id);
    // After a crash within a step, some of the step's records may be missing.
    const isWhole = damage === null && (node.journal === null || how.withinStep === undefined);
    const left = isWhole ? {} : { journal: node.journal?.legible ?? [] };
    kernel.record({ at: kernel.now, node: id, kind: "crash", ...left, ...how });
    if (damage !== null) {
      kernel.lostRecords += damage.unsynced;
      kernel.recordFault(node, () => damage.what);
    }
    kernel.dropWaiting(node);
    kernel.afterChange?.();
  }

  #separate(separation: Separation): void {
    this.#kernel.network.separate(separation);
    for (const node of this.#nodes) {
      this.#kernel.recordFault(node, () => {
        const heard = this.#nodes.filter(({ place }) => place !== node.place && !separation(node.place, place));
        return reaches(heard.map(({ self }) => self));
      });
    }
  }

  /** Restores a node from a snapshot. Returns its timers, which still have to be armed. */
  #adoptNode({ id, state, journal, timers, busyMs = 0 }: NodeSnapshot<V>): Planned[] {
    const kernel = this.#kernel;
    const node = this.#node(id);
    for (const record of journal) kernel.journalOf(node).append(record, kernel.now);
    if (state === null) return [];
    const own = clone(state);
    kernel.population.setState(node, own);
    node.view = this.#protocol.view(own, id);
    node.doneAt = kernel.now + busyMs;
    if (busyMs > 0) kernel.occupy(node, busyMs);
    return timers.map(({ timer, remainingMs, order = Infinity }) => ({
      order,
      plan: () => kernel.arm(node, timer, kernel.now + remainingMs),
    }));
  }
}
