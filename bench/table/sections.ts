/** Uses of a mutual exclusion in the simulator, where every message takes one unit of time. */
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import type { Mutex, UsedMutex } from "../../src/protocols/mutex/parts/user.ts";
import { usedMutex } from "../../src/protocols/mutex/parts/user.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";

export const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Longer than any request takes that is made meanwhile. */
const STAY = 100_000;

export interface Figures {
  readonly messages: number;
  /** In message times. */
  readonly time: number;
}

export interface Section<M extends Mutex> {
  readonly sim: Simulation<UsedMutex<M>>;
  /** From asking to being inside. */
  enter(node: NodeId): Figures;
  /** Asks, and waits for what that causes. */
  ask(node: NodeId): void;
  /** `holder` leaves: from then until `next` is inside. */
  handOver(holder: NodeId, next: NodeId): Figures;
  /** `holder` leaves, and nobody wants in. */
  leave(holder: NodeId): void;
}

export interface SectionOptions {
  /** Whether nodes have to be started: others answer from rest. */
  readonly mustStart?: boolean;
  readonly stay?: number;
  readonly delay?: number | readonly [number, number];
  readonly seed?: number;
}

/** Nodes 0 … N − 1, each with a user. */
export function section<M extends Mutex>(
  mutex: Protocol<M>,
  nodes: number,
  { mustStart = false, stay = STAY, delay = 1, seed = 1 }: SectionOptions = {},
): Section<M> {
  const used = usedMutex(() => mutex, { user: { stayMs: stay, restMs: 1 } });
  const ids = range(0, nodes - 1);
  // Properties look at every node after every step; here only messages and times count.
  const sim = simulation<UsedMutex<M>>({ protocol: { ...used, properties: [] }, nodes: ids, seed, delayMs: delay });
  for (const node of ids) mustStart ? sim.start(node) : sim.wake(node);

  const doing = (node: NodeId): string => sim.world.state(node).user.doing;
  function until(holds: () => boolean): void {
    while (!holds()) if (!sim.step()) throw new Error("expected the node to get in, but nothing happens any more");
  }
  function askNow(node: NodeId): void {
    sim.command(node, { type: "user", body: { type: "use", entries: 1 } } as never);
  }
  /** Up to the step in which the holder leaves, which sends messages itself. */
  function untilLeaving(holder: NodeId): Figures {
    let before = { messages: sim.messages.total, time: sim.now };
    while (doing(holder) === "inside") {
      before = { messages: sim.messages.total, time: sim.now };
      if (!sim.step()) throw new Error("expected the holder to leave, but nothing happens any more");
    }
    return { messages: before.messages, time: sim.now };
  }

  return {
    sim,
    enter(node) {
      const [messages, time] = [sim.messages.total, sim.now];
      askNow(node);
      until(() => doing(node) === "inside");
      return { messages: sim.messages.total - messages, time: sim.now - time };
    },
    ask(node) {
      askNow(node);
      sim.run(sim.now + 100);
    },
    handOver(holder, next) {
      const { messages, time } = untilLeaving(holder);
      until(() => doing(next) === "inside");
      return { messages: sim.messages.total - messages, time: sim.now - time };
    },
    leave(holder) {
      untilLeaving(holder);
      sim.run();
    },
  };
}
