/** A group in the simulator whose members fail, and a record of each of their incarnations. */

import type { CommandOf, NodeId, Protocol, Vocabulary } from "../../src/core/protocol.ts";
import type { GroupEntry, GroupRecord } from "../../src/history/virtual-synchrony.ts";
import { type MonitoredMulticast, monitoredMulticast } from "../../src/protocols/multicast/family/systems.ts";
import type { SimulationOptions } from "../../src/sim/options.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import { linked } from "./reliable-links.ts";

type Watched<M extends Vocabulary> = MonitoredMulticast<M>;

export interface GroupStage<M extends Vocabulary> {
  readonly sim: Simulation<Watched<M>>;
  /** One record for each incarnation of each node, in order of their start. */
  readonly records: readonly GroupRecord[];
  /** All other events with their nodes, for example `stalled 2`. */
  readonly emitted: readonly string[];
  start(node: NodeId): void;
  /** Sends a message. Payloads are numbered by node, so each is unique. */
  send(node: NodeId): void;
  tell(node: NodeId, command: CommandOf<M>): void;
  /** The payloads that a node has delivered in its current incarnation, in order. */
  payloads(node: NodeId): string[];
}

type Said = { type: string; view: number; members: NodeId[]; id: string; from: NodeId; payload: string };

export interface GroupOptions<M extends Vocabulary>
  extends Omit<SimulationOptions<Watched<M>>, "protocol" | "onEvent"> {
  /** With `reliable`, messages from one node to another are not lost while both are running. Broadcasts may be lost. */
  readonly channels?: "lossy" | "reliable";
}

export function groupStage<M extends Vocabulary>(
  channel: Protocol<M>,
  { channels = "lossy", ...options }: GroupOptions<M>,
): GroupStage<M> {
  const records: { node: NodeId; incarnation: number; log: GroupEntry[] }[] = [];
  const emitted: string[] = [];
  const sent = new Map<NodeId, number>();
  const current = (node: NodeId) => records.findLast((record) => record.node === node);
  const watched = monitoredMulticast<M>(() => channel);
  const sim = simulation<Watched<M>>({
    ...options,
    protocol: channels === "reliable" ? linked(watched) : watched,
    onEvent(_at, node, event) {
      const { type, body } = event as unknown as { type: string; body: Said };
      const log = current(node)?.log;
      if (type !== "multicast" || log === undefined) return;
      const { view, members, id, from } = body;
      if (body.type === "installed") log.push({ installed: { view, members } });
      else if (body.type === "ejected") log.push({ ejected: true });
      else if (body.type === "delivered") log.push({ delivered: { id, from } });
      else emitted.push(`${body.type} ${node}`);
    },
  });
  const tell = (node: NodeId, command: CommandOf<M>): void =>
    sim.command(node, { type: "multicast", body: command } as CommandOf<Watched<M>>);
  return {
    sim,
    records,
    emitted,
    start(node) {
      records.push({ node, incarnation: records.filter((record) => record.node === node).length + 1, log: [] });
      sim.start(node);
    },
    send(node) {
      sent.set(node, (sent.get(node) ?? 0) + 1);
      tell(node, { type: "send", payload: `${node}:${sent.get(node)}` } as unknown as CommandOf<M>);
    },
    tell,
    payloads: (node) =>
      sim
        .events(node)
        .map((event) => event as unknown as { type: string; body: Said })
        .filter(({ type, body }) => type === "multicast" && body.type === "delivered")
        .map(({ body }) => body.payload),
  };
}
