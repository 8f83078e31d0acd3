/** A group in the simulator whose members replicate a state, and its random faults. */
import fc from "fast-check";
import type { CommandOf, NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import { monitored } from "../../src/protocols/multicast/family/systems.ts";
import { type Replica, withReplica } from "../../src/protocols/multicast/parts/state-transfer/replica.ts";
import {
  causalTotalWithState,
  isisWithState,
} from "../../src/protocols/multicast/parts/state-transfer/state-transfer.ts";
import { beforeWordsOf, type Transfer } from "../../src/protocols/multicast/parts/state-transfer/vocabulary.ts";
import type { AnyMaker } from "../../src/protocols/system.ts";
import type { SimulationOptions } from "../../src/sim/options.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Act, adversity, befall, recover } from "./group-adversity.ts";
import type { GroupStage } from "./group-stage.ts";
import { linked } from "./reliable-links.ts";

// biome-ignore lint/suspicious/noExplicitAny: the system has many parts, and the tests name only two of them
type Any = any;

export type ReplicaState = Replica["state"];

export const stacksWithState = { isis: isisWithState, "causal-total": causalTotalWithState } as const;

export interface StateStage extends GroupStage<Vocabulary> {
  readonly sim: Simulation<Any>;
  replica(node: NodeId): ReplicaState;
  /** The number of state reports that a node has sent in its view. */
  words(node: NodeId): number;
  tell(node: NodeId, command: CommandOf<Vocabulary>): void;
  /** Sends a command to the replica of a running node. */
  use(node: NodeId, type: "read" | "stop" | "send"): void;
}

export const range = (nodes: number): NodeId[] => Array.from({ length: nodes }, (_, node) => node);

const system = (order: AnyMaker): Protocol<Vocabulary> => withReplica(monitored(order))();

const transferAt = (sim: Simulation<Any>, node: NodeId): Transfer<unknown>["state"] =>
  (sim.world.state(node) as Any).inner.multicast.transfer;

export function stateStage(order: AnyMaker, nodes: number, options: Partial<SimulationOptions<Any>> = {}): StateStage {
  const sim = simulation<Any>({
    protocol: linked(system(order) as Any) as Any,
    nodes: range(nodes),
    seed: 1,
    delayMs: [1, 10],
    ...options,
  });
  const isUp = (node: NodeId): boolean => sim.world.alive.includes(node);
  const stage: StateStage = {
    sim,
    records: [],
    emitted: [],
    start: (node) => {
      sim.start(node);
      stage.use(node, "read");
    },
    // A node outside the view would reuse the names of earlier messages, so it sends nothing.
    send: (node) => {
      if (isUp(node) && stage.replica(node).membership === "member") stage.use(node, "send");
    },
    tell: (node, command) => sim.command(node, { type: "multicast", body: command } as Any),
    payloads: (node) => stage.replica(node).line,
    words: (node) => {
      const { spoken, view } = transferAt(sim, node);
      return Math.max(0, spoken - beforeWordsOf(view));
    },
    replica: (node) => (sim.world.state(node) as Any).inner.replica,
    use: (node, type) => {
      if (isUp(node)) sim.command(node, { type: "replica", body: { type } } as Any);
    },
  };
  return stage;
}

/**
 * Node 0 has a state of many parts. It crashes when node 2, which has sent a message in between, is about to receive
 * them.
 */
export function sourceCrashes(order: AnyMaker, before: (stage: StateStage) => void): StateStage {
  const stage = stateStage(order, 3, { delayMs: 10 });
  const { sim, use, send, replica } = stage;
  const until = (holds: () => boolean): void => {
    while (!holds()) sim.run(sim.now + 1);
  };
  for (const node of [0, 1]) sim.start(node);
  use(0, "read");
  sim.run(500);
  for (let n = 0; n < 40; n++) send(0);
  sim.run(1_000);
  sim.start(2);
  until(() => replica(2).membership === "member");
  use(2, "read");
  send(2);
  before(stage);
  until(() => transferAt(sim, 2).sources[2] !== undefined);
  if (replica(2).own.length === 0) throw new Error("expected node 2 to receive its own message before the state");
  sim.crash(0);
  sim.run(5_000);
  return stage;
}

/** Node 1 requests the state after it has received node 2's message. */
export function anotherReadsLater(stage: StateStage): void {
  while (transferAt(stage.sim, 1).place < 2) stage.sim.run(stage.sim.now + 1);
  stage.use(1, "read");
}

export interface Misfortune {
  readonly nodes: number;
  readonly seed: number;
  readonly acts: readonly Act[];
  /** Nodes that start or stop reading, and after how many acts. */
  readonly readers: readonly { after: number; node: NodeId; reads: boolean }[];
}

export const misfortune = (maxNodes: number, maxActs: number): fc.Arbitrary<Misfortune> =>
  fc.record({
    nodes: fc.integer({ min: 2, max: maxNodes }),
    seed: fc.nat(),
    acts: adversity(maxNodes, maxActs),
    readers: fc.array(fc.record({ after: fc.nat(maxActs), node: fc.nat(maxNodes - 1), reads: fc.boolean() }), {
      maxLength: 10,
    }),
  });

/** Runs all acts and then ends all faults. Afterwards all nodes read, and each sends a message. */
export function suffer(order: AnyMaker, { nodes, seed, acts, readers }: Misfortune): StateStage {
  const stage = stateStage(order, nodes, { seed });
  const all = range(nodes);
  for (const node of all) stage.start(node);
  acts.forEach((act, n) => {
    befall(stage, all, [act]);
    for (const { after, node, reads } of readers) if (after === n) stage.use(node % nodes, reads ? "read" : "stop");
  });
  recover(stage, all);
  for (const node of all) stage.use(node, "read");
  stage.sim.run(stage.sim.now + 3_000);
  for (const node of all) stage.send(node);
  stage.sim.run(stage.sim.now + 2_000);
  return stage;
}
