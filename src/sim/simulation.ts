/**
 * The deterministic simulator: the same handlers as on real processes, in virtual time. Equal options give equal runs,
 * to the byte. A crash loses the node's state, its timers and what is on its way to it, and keeps its journal unless
 * told otherwise. Properties are looked at after every step and every loss, unless told otherwise.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import { clone } from "../core/plain.ts";
import type { CommandOf, EventOf, NodeId, StateOf, Vocabulary, World } from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { dispatch } from "../core/step.ts";
import type { Answer } from "../driver/requests.ts";
import { byzantine } from "../protocols/byzantine.ts";
import type { NodeSnapshot, Snapshot } from "../trace/snapshot.ts";
import { type CrashFate, damageJournal } from "./journal.ts";
import { Kernel } from "./kernel.ts";
import type { LinkModel } from "./links.ts";
import { requireSimulationOptions, type SimulationOptions } from "./options.ts";
import { intoGroups, intoShape, type PartitionShape, type Separation } from "./partitions.ts";
import { patience } from "./rest.ts";
import type { SimulatedNode } from "./simulated-node.ts";
import { type Violation, watcher } from "./watcher.ts";

export interface Simulation<V extends Vocabulary> {
  /** Virtual milliseconds since the beginning. */
  readonly now: number;
  readonly world: World<StateOf<V>>;
  /** Messages sent so far, self-sends not counted, messages to crashed nodes counted. */
  readonly messages: { readonly total: number; readonly byType: Readonly<Record<string, number>> };
  /** As how many datagrams they go out where one reaches all others at once, as with IP multicast. */
  readonly datagrams: number;
  /** How many of them did not arrive: lost on the way, or as their receiver was down. A copy counts by itself. */
  readonly lost: number;
  /** How many journal records crashes have taken that were not durable. */
  readonly lostRecords: number;
  /** Whether nothing is left to happen, unless somebody does something from outside. */
  readonly isOver: boolean;
  /** Names of properties that were looked at where they speak: `sometimes` has been seen, `quiescent` was judged at a rest. */
  readonly seen: ReadonlySet<string>;
  /** The first violation of each property. */
  readonly violations: readonly Violation[];
  /** What a node has emitted since its last start. */
  events(node: NodeId): readonly EventOf<V>[];
  /** What a node has answered since its last start, to commands that carry a `request`. */
  replies(node: NodeId): readonly Answer<V>[];
  /** The violations so far, what should hold in the end and does not hold now, and who still waits for a `leadsTo`. */
  verdict(): readonly Violation[];
  /** Makes a node alive without starting it, as if it had been running idly before the story begins. */
  wake(node: NodeId): void;
  /**
   * Starts a node, or starts it again after a crash: its journal is replayed first.
   * @throws EnvironmentError if its journal is damaged; the node stays down.
   */
  start(node: NodeId): void;
  /**
   * The journal is kept, unless `fate` says otherwise. Done by a listener to an entry or an event while the node takes
   * a step, it breaks the step off: the node does nothing more of it.
   * @throws UsageError for a fate that is none
   */
  crash(node: NodeId, fate?: CrashFate): void;
  /** The node stands still: messages, timers and commands wait in order, and are handled when it resumes. */
  pause(node: NodeId): void;
  resume(node: NodeId): void;
  /** From now on the node's timers, those that run included, go at `rate` times the speed of the others'. */
  clockRate(node: NodeId, rate: number): void;
  command(node: NodeId, command: CommandOf<V>): void;
  /** From now on, messages from `from` to `to` are lost. What is on its way arrives. */
  cut(from: NodeId, to: NodeId): void;
  mend(from: NodeId, to: NodeId): void;
  /** From now on, no message goes from one group to another. Nodes in no group form one of their own. */
  partition(groups: readonly (readonly NodeId[])[]): void;
  partitionShape(shape: PartitionShape): void;
  /** Mends all cuts and ends the partition. */
  heal(): void;
  /** Changes what is true of a link; what is not named stays. */
  setLink(from: NodeId, to: NodeId, model: Partial<LinkModel>): void;
  /** Takes one step: whatever is next in time happens. False when nothing is left, or nothing until `untilMs`. */
  step(untilMs?: number): boolean;
  /**
   * Runs until nothing is left to happen, or until `untilMs`; the clock then stands at `untilMs`.
   * @throws UsageError if it goes on and on, and no time is given
   */
  run(untilMs?: number): void;
  /**
   * Begins where `snapshot` was taken. Messages that were in flight keep their ids and are given new delays.
   * @throws UsageError unless nothing has happened yet and the nodes are the same.
   */
  adopt(snapshot: Snapshot<V>): void;
}

/** @throws UsageError for an option that is out of range. */
export function simulation<V extends Vocabulary>(options: SimulationOptions<V>): Simulation<V> {
  requireSimulationOptions(options);
  const protocol = options.byzantine === undefined ? options.protocol : byzantine(options.protocol, options.byzantine);
  const kernel = new Kernel<V>(protocol, options);
  const { population, network } = kernel;
  const { world, ids, nodes } = population;
  const watch = watcher(kernel.histories.shown(protocol.properties), world, (pendingTimers) =>
    kernel.isQuiescent(pendingTimers),
  );
  const faults = random(options.seed).stream("faults");
  const placeOf = (id: NodeId): number => population.node(id).place;
  if (options.properties !== "at the end") kernel.afterChange = () => watch.look(kernel.now);

  /** `idle`: as if it always had been up, so that its `start` does not run. */
  function boot(id: NodeId, idle: { idle?: true }): SimulatedNode<V> {
    const node = population.node(id);
    if (node.state !== undefined) throw new UsageError("node-up", `expected node ${id} to be down, but it is alive`);
    const state = protocol.init(id, kernel.peers(node));
    for (const record of node.journal?.replay(id) ?? []) dispatch(protocol, state, { kind: "replay", record }, node);
    population.setState(node, state);
    // What was sent to it while it was down does not reach its next life either.
    if (node.incarnation > 0) node.incarnation += 1;
    node.events = null;
    node.replies = null;
    kernel.record({ at: kernel.now, node: id, kind: "start", ...idle });
    return node;
  }

  function crash(id: NodeId, fate: CrashFate): void {
    const node = population.aliveNode(id) as SimulatedNode<V>;
    if (kernel.stepping === node) node.struck = fate;
    else fall(node, fate, {});
  }

  kernel.fall = (node) => {
    const fate = node.struck as CrashFate;
    node.struck = null;
    fall(node, fate, { withinStep: true });
  };

  function fall(node: SimulatedNode<V>, fate: CrashFate, how: { withinStep?: true }): void {
    kernel.requireBetweenSteps();
    const id = node.self;
    const damage = node.journal === null ? null : damageJournal(node.journal, fate, kernel.now, faults);
    population.setState(node, undefined);
    for (const request of node.requests?.keys() ?? []) node.requests?.set(request, "past");
    node.incarnation += 1;
    for (const timer of node.armed?.keys() ?? []) kernel.cancelTimer(node, timer);
    node.view = null;
    node.isPaused = false;
    node.isBusy = false;
    watch.forget(id);
    // After a crash within a step not all that the step journals may be there.
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

  function separate(separation: Separation): void {
    network.separate(separation);
    for (const node of nodes) {
      kernel.recordFault(node, () => {
        const heard = nodes.filter(({ place }) => place !== node.place && !separation(node.place, place));
        return `partition: reaches ${heard.length === 0 ? "nobody" : heard.map(({ self }) => self).join(", ")}`;
      });
    }
  }

  function clockRate(id: NodeId, rate: number): void {
    if (!(Number.isFinite(rate) && rate > 0))
      throw new UsageError("bad-rate", unexpected("the clock rate", "a finite number > 0", rate));
    const node = population.node(id);
    for (const [timer, { at }] of [...(node.armed ?? [])])
      kernel.arm(node, timer, kernel.now + (Math.max(0, at - kernel.now) * node.rate) / rate);
    node.rate = rate;
    kernel.recordFault(node, () => `clock at ${rate} times the speed`);
  }

  function adopt(snapshot: Snapshot<V>): void {
    const { at, inFlight } = snapshot;
    if (kernel.now !== 0 || world.alive.length > 0)
      throw new UsageError("begun", "expected a simulation in which nothing has happened yet to adopt a snapshot");
    const known = snapshot.nodes.map(({ id }) => id);
    if (known.length !== ids.length || known.some((id) => !ids.includes(id)))
      throw new UsageError("other-nodes", unexpected("the snapshot's nodes", ids.join(", "), known));
    kernel.continueFrom(at);
    for (const each of snapshot.nodes) adoptNode(each);
    for (const { id, from, to, message, delayMs } of inFlight) {
      const receiver = population.node(to);
      const link = network.link(population.node(from), receiver);
      kernel.carry(receiver, from, id, message, link.arrival(message, at, delayMs ?? link.carrier.travel()));
    }
  }

  function adoptNode({ id, state, journal, timers }: NodeSnapshot<V>): void {
    const node = population.node(id);
    for (const record of journal) kernel.journalOf(node).append(record, kernel.now);
    if (state === null) return;
    const own = clone(state);
    population.setState(node, own);
    node.view = protocol.view(own, id);
    for (const { timer, remainingMs } of timers) kernel.arm(node, timer, kernel.now + remainingMs);
  }

  return {
    get now() {
      return kernel.now;
    },
    world,
    get messages() {
      return { total: kernel.sent.total, byType: kernel.sent.byType };
    },
    get datagrams() {
      const { total, broadcasts } = kernel.sent;
      return total - broadcasts * (ids.length - 1) + broadcasts;
    },
    get lost() {
      return kernel.lost;
    },
    get lostRecords() {
      return kernel.lostRecords;
    },
    get isOver() {
      return kernel.isOver;
    },
    seen: watch.seen,
    violations: watch.violations,
    events: (id) => population.node(id).events ?? [],
    replies: (id) => population.node(id).replies ?? [],
    verdict: () => watch.verdict(kernel.now),
    wake: (id) => void boot(id, { idle: true }),
    start: (id) => kernel.start(boot(id, {})),
    crash: (id, fate = { journal: "kept" }) => crash(id, fate),
    pause(id) {
      const node = population.aliveNode(id);
      if (node.isPaused) throw new UsageError("node-paused", `expected node ${id} to be running, but it is paused`);
      node.isPaused = true;
      kernel.record({ at: kernel.now, node: id, kind: "pause" });
    },
    resume(id) {
      const node = population.aliveNode(id);
      if (!node.isPaused) throw new UsageError("node-running", `expected node ${id} to be paused, but it is running`);
      node.isPaused = false;
      kernel.record({ at: kernel.now, node: id, kind: "resume" });
      if (!node.isBusy && kernel.hasWaiting(node)) kernel.occupy(node, 0);
    },
    clockRate,
    adopt,
    command: (id, command) => kernel.command(population.aliveNode(id), command),
    cut(from, to) {
      network.cut(population.node(from), population.node(to));
      kernel.recordFault(population.node(from), () => `link to ${to} cut`);
    },
    mend(from, to) {
      network.mend(population.node(from), population.node(to));
      kernel.recordFault(population.node(from), () => `link to ${to} mended`);
    },
    partition: (groups) => separate(intoGroups(ids.length, groups, placeOf)),
    partitionShape: (shape) => separate(intoShape(ids.length, shape, placeOf)),
    heal() {
      network.heal();
      for (const node of nodes) kernel.recordFault(node, () => "all links mended");
    },
    setLink(from, to, model) {
      const [sender, receiver] = [population.node(from), population.node(to)];
      network.setLink(sender, receiver, model, kernel.latestArrival(sender, receiver));
      kernel.recordFault(sender, () => `link to ${to} changed: ${JSON.stringify(model)}`);
    },
    step: (untilMs = Number.POSITIVE_INFINITY) => kernel.step(untilMs),
    run(untilMs = Number.POSITIVE_INFINITY) {
      const happened = patience(nodes.length, untilMs);
      while (kernel.step(untilMs)) happened();
      if (Number.isFinite(untilMs)) kernel.now = Math.max(kernel.now, untilMs);
    },
  };
}
