/** A channel of `join()` in the simulator, with possible faults: multicasts in views that the log agrees on. */

import type { CommandOf, NodeId, Property, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import {
  type GroupEntry,
  type GroupViolation,
  virtualSynchrony as virtualSynchronyOf,
  withCountedViews,
} from "../../src/history/virtual-synchrony.ts";
import { channelSystem, type Order } from "../../src/protocols/multicast/family/channels.ts";
import {
  fifoOrder,
  happenedBeforeOrder,
  totalOrder,
  virtualSynchrony,
} from "../../src/protocols/multicast/family/properties.ts";
import { multicastModel } from "../../src/protocols/multicast/family/systems.ts";
import type { LogViews } from "../../src/protocols/multicast/parts/log-views/log-views.ts";
import { serviceProperties } from "../../src/protocols/service/coordination-service/properties.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { befall, recover } from "./group-adversity.ts";
import type { GroupStage } from "./group-stage.ts";
import { type Fate, quick } from "./log-stage.ts";
import { range } from "./sizes.ts";

const ordersOf: Readonly<Record<Order, readonly Property<never>[]>> = {
  none: [fifoOrder],
  fifo: [fifoOrder],
  causal: [happenedBeforeOrder],
  total: [totalOrder],
  "causal-total": [totalOrder, happenedBeforeOrder],
};

export interface ChannelStage extends GroupStage<Vocabulary> {
  readonly sim: Simulation<never>;
  readonly count: {
    ejected: number;
    restored: number;
    expired: number;
    expelled: number;
    views: number;
    filled: number;
  };
  viewsOf(node: NodeId): LogViews["state"];
}

// biome-ignore lint/suspicious/noExplicitAny: parts are looked up by name
type Any = any;

function viewsIn(state: Any): LogViews["state"] {
  if (state.views !== undefined) return state.views;
  return viewsIn(state.order ?? state.lower);
}

export function channelStage(
  nodes: number,
  order: Order,
  { seed = 1, delayMs = [1, 10] as [number, number], system = channelSystem(order) } = {},
) {
  const records: { node: NodeId; incarnation: number; log: GroupEntry[] }[] = [];
  const count = { ejected: 0, restored: 0, expired: 0, expelled: 0, views: 0, filled: 0 };
  const model = multicastModel(quick(system), [...ordersOf[order], virtualSynchrony] as never)() as Any;
  const protocol: Protocol<Vocabulary> = { ...model, properties: [...model.properties, ...serviceProperties] };
  const sim = simulation<Vocabulary>({
    protocol,
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    syncMs: 1,
    onEvent(_at, node, { type: part, body }: Any) {
      const log = records.findLast((record) => record.node === node)?.log;
      if (part === "replica" && body.type === "restored") count.restored += 1;
      if (part === "replica" && body.type === "ended" && body.reason === "expired") count.expired += 1;
      if (part !== "multicast") return;
      if (body.type === "asked" && body.operation.type === "expelFromGroup") count.expelled += 1;
      if (body.type === "installed") {
        count.views += 1;
        log?.push({ installed: { view: body.view, members: body.members } });
      } else if (body.type === "ejected") {
        log?.push({ ejected: true });
        count.ejected += 1;
      } else if (body.type === "delivered") log?.push({ delivered: { id: body.id, from: body.from } });
    },
  }) as unknown as Simulation<never>;
  const state = (node: NodeId): Any => sim.world.state(node);
  const stage: ChannelStage = {
    sim,
    get records() {
      return withCountedViews(records);
    },
    emitted: [],
    count,
    viewsOf: (node) => viewsIn(state(node).multicast),
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
      sim.command(node, { type: "workload", body: { type: "send", messages: 1 } } as never);
    },
    /** Does nothing, because the node would leave permanently. */
    tell: (_node: NodeId, _command: CommandOf<Vocabulary>) => {},
    payloads: (node) => state(node).workload.delivered.map(({ name }: Any) => name),
  };
  return stage;
}

export const synchronyOf = ({ records }: Pick<ChannelStage, "records">, order: Order): readonly GroupViolation[] =>
  virtualSynchronyOf(records, { total: order === "total" || order === "causal-total" });

/** Runs all faults and then ends them. Afterwards each node sends a message. */
export function endure({ nodes, seed, acts }: Fate, order: Order, system = channelSystem(order)): ChannelStage {
  const stage = channelStage(nodes, order, { seed, system });
  const all = range(0, nodes - 1);
  for (const node of all) stage.start(node);
  stage.sim.run(1_000);
  befall(stage, all, acts);
  recover(stage, all, 8_000);
  for (const from of all) for (const to of all) if (from !== to) stage.sim.setLink(from, to, { order: "fifo" });
  stage.sim.run(stage.sim.now + 6_000);
  for (const node of all) stage.send(node);
  stage.sim.run(stage.sim.now + 1_000);
  return stage;
}
