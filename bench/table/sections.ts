/**
 * Runs mutual exclusion algorithms in the simulator, with one unit of time per message, and measures entry, hand-over
 * and bandwidth.
 */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import { type Mutex, type MutexWithWorkload, mutexWithWorkload } from "../../src/protocols/mutex/family/workload.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Cost, costOf, exactly, type Formula, range } from "./cost.ts";

/** Longer than any request that is made while a node is inside. */
const STAY = 100_000;

export interface Figures {
  readonly messages: number;
  /** In message times. */
  readonly time: number;
}

export interface Section<M extends Mutex> {
  readonly sim: Simulation<MutexWithWorkload<M>>;
  /** How many of the counted messages have been sent so far. */
  readonly spent: number;
  /** Makes the node request entry, and measures until it is inside. */
  enter(node: NodeId): Figures;
  /** Makes `holder` leave while no node is waiting. */
  leave(holder: NodeId): void;
  /** Enters and leaves. */
  use(node: NodeId): void;
  /** Makes `holder` enter, `next` request entry and `holder` leave. Measures from then until `next` is inside. */
  handOver(holder: NodeId, next: NodeId): Figures;
  /** Requests entry, and waits for the effects of the request. */
  ask(node: NodeId): void;
}

export interface SectionOptions {
  /** Whether nodes must be started. Protocols without this option respond even if they are not started. */
  readonly mustStart?: boolean;
  /** How long the nodes have been running when the measurement begins. */
  readonly settle?: number;
  /** The types of messages that are counted. Default: all. */
  readonly counted?: readonly string[];
  readonly stay?: number;
  readonly delay?: number | readonly [number, number];
  readonly seed?: number;
}

/** Creates nodes 0 … N − 1, each with a workload. */
export function section<M extends Mutex>(mutex: Protocol<M>, nodes: number, options: SectionOptions = {}): Section<M> {
  const { stay = STAY } = options;
  return usedSection(
    mutexWithWorkload(() => mutex, { workload: { stayMs: stay, restMs: 1 } }),
    nodes,
    options,
  );
}

/** Like `section`, for an assembly that already has its workload. `stay` has no effect. */
export function usedSection<M extends Mutex>(
  protocol: Protocol<MutexWithWorkload<M>>,
  nodes: number,
  { mustStart = false, settle = 0, counted, delay = 1, seed = 1 }: SectionOptions = {},
): Section<M> {
  const ids = range(0, nodes - 1);
  // Properties would inspect every node after every step, but only messages and times are measured here.
  const sim = simulation<MutexWithWorkload<M>>({
    protocol: { ...protocol, properties: [] },
    nodes: ids,
    seed,
    delayMs: delay,
  });
  for (const node of ids) mustStart ? sim.start(node) : sim.wake(node);
  sim.run(settle);

  const spent = (): number =>
    counted === undefined
      ? sim.messages.total
      : counted.reduce((sum, type) => sum + (sim.messages.byType[type] ?? 0), 0);
  const doing = (node: NodeId): string => sim.world.state(node).workload.doing;
  function until(holds: () => boolean): void {
    while (!holds()) if (!sim.step()) throw new Error("expected the node to enter, but the system is idle");
  }
  function askNow(node: NodeId): void {
    sim.command(node, { type: "workload", body: { type: "use", entries: 1 } } as never);
  }
  /** Runs until the holder leaves. Returns the figures before that step, which itself sends messages. */
  function untilLeaving(holder: NodeId): Figures {
    let before = spent();
    while (doing(holder) === "inside") {
      before = spent();
      if (!sim.step()) throw new Error("expected the holder to leave, but the system is idle");
    }
    return { messages: before, time: sim.now };
  }

  const used: Section<M> = {
    sim,
    get spent() {
      return spent();
    },
    enter(node) {
      const [messages, time] = [spent(), sim.now];
      askNow(node);
      until(() => doing(node) === "inside");
      return { messages: spent() - messages, time: sim.now - time };
    },
    leave(holder) {
      untilLeaving(holder);
      sim.run(sim.now + 100);
    },
    use(node) {
      used.enter(node);
      used.leave(node);
    },
    ask(node) {
      askNow(node);
      sim.run(sim.now + 100);
    },
    handOver(holder, next) {
      used.enter(holder);
      used.ask(next);
      const { messages, time } = untilLeaving(holder);
      until(() => doing(next) === "inside");
      return { messages: spent() - messages, time: sim.now - time };
    },
  };
  return used;
}

/** How long the token is idle, which is negligible compared with a message. */
export const HARDLY = 1e-9;
const WANTING = 9;
const ENTRIES = 3;

/** Returns nodes at every distance: all nodes in a small ring, but only some in a large one. */
export const places = (nodes: number): number[] =>
  range(1, nodes - 1).filter((place) => nodes <= 64 || place % 111 === 0 || place === 1 || place === nodes - 1);

/** The node that enters first, and the node that requests entry while the first one is inside. */
export type Pair = readonly [holder: NodeId, next: NodeId];

/**
 * Returns the mean number of messages per entry when `WANTING` nodes, or all of them if there are fewer, request entry
 * repeatedly.
 */
export function crowdedOf<M extends Mutex>(mutex: () => Protocol<M>, nodes: number): number {
  const wanting = Math.min(nodes, WANTING);
  const used = section(mutex(), nodes, { stay: 1, delay: [0.5, 1.5], seed: nodes });
  for (const node of range(0, wanting - 1))
    used.sim.command(node, { type: "workload", body: { type: "use", entries: ENTRIES } } as never);
  used.sim.run();
  return used.sim.messages.total / (wanting * ENTRIES);
}

export const CROWD = `up to ${WANTING} nodes that want in ${ENTRIES} times each`;

interface FormulasAtRest {
  readonly pair: (nodes: number) => Pair;
  readonly entry: Formula;
  readonly handOver: Formula;
  readonly handOverTime: Formula;
  readonly bandwidth: Formula;
}

/**
 * Returns the costs of algorithms that become idle. In all of them, a request and its answer take two message times.
 */
export function costsAtRest<M extends Mutex>(
  protocol: string,
  make: () => Protocol<M>,
  { pair, entry, handOver, handOverTime, bandwidth }: FormulasAtRest,
): Cost[] {
  const cost = costOf(protocol);
  const entered = (n: number): Figures => section(make(), n).enter(n - 1);
  const handed = (n: number): Figures => section(make(), n).handOver(...pair(n));
  const used = (n: number): number => {
    const alone = section(make(), n);
    alone.use(n - 1);
    return alone.spent;
  };
  return [
    cost("entry", "messages", entry, (n) => entered(n).messages),
    cost("client delay", "message times", exactly(2), (n) => entered(n).time),
    cost("hand-over", "messages", handOver, (n) => handed(n).messages),
    cost("hand-over", "message times", handOverTime, (n) => handed(n).time),
    cost("bandwidth", "messages", bandwidth, used),
  ];
}
