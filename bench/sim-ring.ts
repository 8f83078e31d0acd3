/** Chang–Roberts elections on the simulator, timed. */
import type { NodeId } from "../src/core/protocol.ts";
import { random } from "../src/core/random.ts";
import {
  type ExtendedChangRoberts,
  extendedChangRoberts,
} from "../src/protocols/election/chang-roberts/extended-chang-roberts.ts";
import type { SimulationOptions } from "../src/sim/options.ts";
import { simulation } from "../src/sim/simulation.ts";
import { bareElection } from "./bare-loop.ts";

export interface Run {
  readonly messages: number;
  /** From the first call to the end. */
  readonly ms: number;
  /** The same in time of the processor, collecting garbage included: what other work on the machine changes least. */
  readonly cpuMs: number;
  /** What it took to make the nodes and to wake them. */
  readonly setUpMs: number;
}

export const DELAY_MS = 10;

export type RingOrder = "descending" | "ascending" | "random";

/** Ids from 0, clockwise. Descending is the worst order when all call: N(N + 1)/2 + N messages. */
export function ringOf(nodes: number, order: RingOrder, seed = 1): NodeId[] {
  const ring = Array.from({ length: nodes }, (_, i) => (order === "descending" ? nodes - 1 - i : i));
  if (order !== "random") return ring;
  const chance = random(seed);
  for (let i = nodes - 1; i > 0; i--) {
    const j = chance.below(i + 1);
    [ring[i], ring[j]] = [ring[j] as NodeId, ring[i] as NodeId];
  }
  return ring;
}

type Extra = Partial<Pick<SimulationOptions<ExtendedChangRoberts>, "trace" | "properties">>;

/** One election on the simulator, with the protocol as everybody gets it. Everybody calls, or one node alone. */
export function simulatedElection(ring: readonly NodeId[], extra: Extra, callers: readonly NodeId[] = ring): Run {
  const made = performance.now();
  const sim = simulation<ExtendedChangRoberts>({
    protocol: extendedChangRoberts({ ring }),
    nodes: ring,
    seed: 1,
    delayMs: DELAY_MS,
    properties: "at the end",
    ...extra,
  });
  for (const node of ring) sim.wake(node);
  const called = performance.now();
  const timed = stopwatch();
  for (const node of callers) sim.command(node, { type: "call" });
  sim.run();
  const times = timed();
  const [violation] = sim.verdict();
  if (violation !== undefined)
    throw new Error(`expected the election to be right, but ${violation.property} is violated`);
  return { messages: sim.messages.total, ...times, setUpMs: called - made };
}

export function barely(ring: readonly NodeId[]): Run {
  const timed = stopwatch();
  const messages = bareElection(ring, DELAY_MS);
  return { messages, ...timed(), setUpMs: 0 };
}

function stopwatch(): () => Pick<Run, "ms" | "cpuMs"> {
  const began = performance.now();
  const spent = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(spent);
    return { ms: performance.now() - began, cpuMs: (user + system) / 1_000 };
  };
}
