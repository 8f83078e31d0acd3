/** A group in the simulator that sends its messages through a log, with a workload at every node and random faults. */
import fc from "fast-check";
import type { Assembly } from "../../src/core/assemble.ts";
import type { CommandOf, NodeId, Property, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import {
  type GroupEntry,
  type GroupViolation,
  virtualSynchrony as virtualSynchronyOf,
  withCountedViews,
} from "../../src/history/virtual-synchrony.ts";
import { happenedBeforeOrder, totalOrder, virtualSynchrony } from "../../src/protocols/multicast/family/properties.ts";
import { multicastModel } from "../../src/protocols/multicast/family/systems.ts";
import type { MulticastWorkload } from "../../src/protocols/multicast/family/workload.ts";
import { type LogMulticast, logMulticastSystem } from "../../src/protocols/multicast/log-multicast.ts";
import type { ServiceParts } from "../../src/protocols/service/coordination-service/coordination-service.ts";
import type { GroupMember } from "../../src/protocols/service/coordination-service/operations.ts";
import { serviceProperties } from "../../src/protocols/service/coordination-service/properties.ts";
import { defaulting, type System } from "../../src/protocols/system.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { type Act, adversity, befall, recover } from "./group-adversity.ts";
import type { GroupStage } from "./group-stage.ts";
import { range } from "./sizes.ts";

/**
 * Options for sessions that expire quickly and logs that keep no entries, so a disconnected node catches up with a
 * snapshot.
 */
const quickly: Readonly<Record<string, object>> = {
  session: { leaseMs: 1_000, renewMs: 250, sweepMs: 200, retryMs: 200 },
  replica: { snapshotChars: 300 },
  log: { keptEntries: 0 },
};

/** @param keepsAll whether entries are kept, so that no snapshot makes a node skip entries */
export const quick = ({ parts, ...rest }: System, keepsAll = false): System => ({
  ...rest,
  parts: Object.fromEntries(
    Object.entries(parts).map(([name, make]) => [
      name,
      defaulting(make, name === "replica" && keepsAll ? { snapshotChars: 0 } : (quickly[name] ?? {})),
    ]),
  ),
});

type Watched = Assembly<{ workload: MulticastWorkload; multicast: LogMulticast } & ServiceParts>;

export interface LogStage extends GroupStage<Vocabulary> {
  readonly sim: Simulation<never>;
  /** Messages that were delivered although their sender had left the group or rejoined it. */
  readonly late: readonly string[];
  readonly count: { ejected: number; restored: number; expired: number; waited: number };
  state(node: NodeId): Watched["state"];
}

const orders = [totalOrder, happenedBeforeOrder, virtualSynchrony];

/** Returns the protocol with the properties of the deliveries, the service and the log. */
function modelOf(system: System, keepsAll: boolean): Protocol<Watched> {
  const model = multicastModel(quick(system, keepsAll), orders)() as unknown as Protocol<Watched>;
  return { ...model, properties: [...model.properties, ...(serviceProperties as unknown as Property<Watched>[])] };
}

const memberOf = ({ session, member, wait }: GroupMember): string => `${session} of ${member}, for time ${wait}`;

export function logStage(
  nodes: number,
  { seed = 1, delayMs = [1, 10] as [number, number] | number, system = logMulticastSystem(), keepsAll = false } = {},
): LogStage {
  const records: { node: NodeId; incarnation: number; log: GroupEntry[] }[] = [];
  const late: string[] = [];
  const count = { ejected: 0, restored: 0, expired: 0, waited: 0 };
  /** The sender of each text, and the latest view that each node has learned. */
  const sayers = new Map<string, string>();
  const views = new Map<NodeId, readonly string[]>();
  const sim = simulation<Watched>({
    protocol: modelOf(system, keepsAll),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    syncMs: 1,
    onEvent(_at, node, { type: part, body }) {
      const log = records.findLast((record) => record.node === node)?.log;
      if (part === "replica" && body.type === "grouped") {
        views.set(node, body.members.map(memberOf));
      }
      if (part === "replica" && body.type === "restored") {
        count.restored += 1;
        views.delete(node); // Unknown until the next view.
      }
      if (part === "replica" && body.type === "ended" && body.reason === "expired") count.expired += 1;
      if (part === "replica" && body.type === "said") {
        const sayer = sayers.get(body.text) ?? "nobody";
        if (views.get(node)?.includes(sayer) === false) late.push(`${body.text} of session ${sayer}, at node ${node}`);
      }
      if (part !== "multicast") return;
      if (body.type === "asked" && body.operation.type === "say") {
        const { session } = sim.world.state(node).multicast.order;
        const { text, wait } = body.operation;
        sayers.set(text, memberOf({ session: session ?? 0, member: node, wait, spoken: 0 }));
      } else if (body.type === "installed") log?.push({ installed: { view: body.view, members: body.members } });
      else if (body.type === "ejected") {
        log?.push({ ejected: true });
        count.ejected += 1;
      } else if (body.type === "delivered") log?.push({ delivered: { id: body.id, from: body.from } });
    },
  });
  const state = (node: NodeId): Watched["state"] => sim.world.state(node);
  return {
    sim,
    get records() {
      return withCountedViews(records);
    },
    emitted: [],
    late,
    count,
    state,
    start(node) {
      records.push({ node, incarnation: records.filter((record) => record.node === node).length + 1, log: [] });
      sim.start(node);
    },
    /**
     * Sends only after the first view. Before it, the workload of a restarted node would reuse the names of earlier
     * messages.
     */
    send(node) {
      if (!sim.world.alive.includes(node) || state(node).workload.view === 0) return;
      if (!state(node).multicast.order.isMember) count.waited += 1;
      sim.command(node, { type: "workload", body: { type: "send", messages: 1 } });
    },
    /** Does nothing, because the node would leave permanently. */
    tell: (_node: NodeId, _command: CommandOf<Vocabulary>) => {},
    payloads: (node) => state(node).workload.delivered.map(({ name }) => name),
  };
}

/**
 * Returns violations of view synchrony, except one kind that is not checked: a node without a session receives views
 * that exclude it, and their messages.
 */
export const synchronyOf = ({ records }: Pick<LogStage, "records">): readonly GroupViolation[] =>
  virtualSynchronyOf(records, { total: true }).filter(({ rule }) => rule !== "self-inclusion");

export interface Fate {
  readonly nodes: number;
  readonly seed: number;
  readonly acts: readonly Act[];
}

export const fate = (maxNodes: number, acts: number): fc.Arbitrary<Fate> =>
  fc.record({ nodes: fc.integer({ min: 2, max: maxNodes }), seed: fc.nat(), acts: adversity(maxNodes, acts) });

/** Runs all faults and then ends them. Afterwards each node sends a message. */
export function endure({ nodes, seed, acts }: Fate, system = logMulticastSystem()): LogStage {
  const stage = logStage(nodes, { seed, system });
  const all = range(0, nodes - 1);
  for (const node of all) stage.start(node);
  stage.sim.run(1_000);
  befall(stage, all, acts);
  recover(stage, all, 4_000);
  // A node that receives entries out of order would keep getting snapshots here, because logs keep no entries.
  for (const from of all) for (const to of all) if (from !== to) stage.sim.setLink(from, to, { order: "fifo" });
  stage.sim.run(stage.sim.now + 2_000);
  for (const node of all) stage.send(node);
  stage.sim.run(stage.sim.now + 1_000);
  return stage;
}
