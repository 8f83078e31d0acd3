/** How each kind of fault affects machines and links. */
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import type { Delay } from "../sim/delay.ts";
import type { Fault } from "./faults.ts";
import type { SimulatedMachine } from "./simulated-machine.ts";
import type { LinkModel, SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { WorldOptions } from "./world-options.ts";

/** How a link behaves during a random fault. */
const TROUBLED: Readonly<Record<"slow" | "lossy", LinkModel>> = {
  slow: { delayMs: { logNormal: { medianMs: 40, sigma: 1 } } },
  lossy: { loss: 0.2 },
};
const SLOW_DISK_MS: Delay = [5, 200];
/** The maximum random error in the speed of a clock. The leases for locks and elections allow for 5 %. */
const DRIFT = 0.04;

/** The parts of a world that faults affect. */
export interface Surrounded {
  readonly network: SimulatedNetwork;
  /** How links behave without faults. */
  readonly links: LinkModel;
  readonly members: readonly NodeId[];
  member(id: NodeId): SimulatedMachine;
  /** Returns the process of a member or client. */
  process(id: NodeId): SimulatedProcess | null;
}

/**
 * Begins a fault.
 * @returns a function that ends it
 */
export function begin({ kind, nodes }: Fault, around: Surrounded): () => void {
  const { network, links, members } = around;
  const [first, second] = nodes as [NodeId, NodeId];
  switch (kind) {
    case "crash":
    case "kill": {
      const machine = around.member(first);
      machine.end(kind === "crash");
      return () => void (machine.run ?? machine.start());
    }
    case "pause": {
      const process = around.process(first);
      process?.pause();
      return () => process?.resume();
    }
    case "partition": {
      const all = [...members, ...nodes.filter((node) => !members.includes(node))];
      const cuts: (() => void)[] = [];
      for (const from of all)
        for (const to of all)
          if (from !== to && nodes.includes(from) !== nodes.includes(to)) cuts.push(network.link(from, to).cut());
      return () => {
        for (const mend of cuts) mend();
      };
    }
    case "cut":
      return network.link(first, second).cut();
    case "slow":
    case "lossy": {
      const bothWays = [network.link(first, second), network.link(second, first)];
      for (const link of bothWays) link.set({ ...links, ...TROUBLED[kind] });
      return () => {
        for (const link of bothWays) link.set(links);
      };
    }
    case "slow-disk":
      return around.member(first).disk.slowDown(SLOW_DISK_MS);
    case "full-disk": {
      const machine = around.member(first);
      const empty = machine.disk.fill();
      return () => {
        empty();
        makeSureItRuns(machine);
      };
    }
  }
}

/** Once there is space, restarts a process that ended because the disk was full. */
export function makeSureItRuns(machine: SimulatedMachine): void {
  if (machine.hasFailed) machine.end(false);
  if (machine.run === null && machine.isUp && !machine.disk.isFull) machine.start();
}

/** Returns how fast each machine's clocks run. */
export function speedsOf({ drift, faults }: WorldOptions, chance: Random): (id: NodeId) => number {
  if (drift !== undefined || faults === undefined || chance.below(2) === 0) return (id) => drift?.[id] ?? 1;
  return (id) => chance.stream(`${id}`).between(1 - DRIFT, 1 + DRIFT);
}
