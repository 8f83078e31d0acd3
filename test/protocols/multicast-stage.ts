/** Helpers for tests of message orders: groups whose members send and record their deliveries, and explorations. */
import { type Exploration, type ExploreOptions, explore } from "../../src/check/explore.ts";
import type { Move } from "../../src/check/model.ts";
import type { NodeId, Property, Protocol, Tagged, Vocabulary } from "../../src/core/protocol.ts";
import { unwrapped } from "../../src/core/wrapping.ts";
import { delivery } from "../../src/protocols/multicast/family/properties.ts";
import {
  type MulticastWithWorkload,
  type MulticastWorkload,
  type MulticastWorkloadOptions,
  multicastWithWorkload,
} from "../../src/protocols/multicast/family/workload.ts";
import type { SimulationOptions } from "../../src/sim/options.ts";
import { type Simulation, simulation } from "../../src/sim/simulation.ts";
import type { TraceEntry } from "../../src/trace/entry.ts";
import { logLine } from "../../src/trace/log.ts";

import { range } from "./sizes.ts";

export const MESSAGE_MS = 10;

export const send = (payload: string) => ({ type: "send" as const, payload });
export const use = (messages: number) => ({ type: "workload" as const, body: { type: "send" as const, messages } });

/** Starts idle nodes without workloads. */
export function stage<M extends Vocabulary>(
  protocol: Protocol<M>,
  nodes: number,
  options: Partial<SimulationOptions<M>> = {},
) {
  const entries: TraceEntry[] = [];
  const delivered: { node: NodeId; at: number; payload: string; id: string }[] = [];
  const sim = simulation<M>({
    protocol,
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: MESSAGE_MS,
    trace: (entry) => entries.push(entry),
    onEvent: (at, node, event) => {
      if (event.type === "delivered") delivered.push({ node, at, ...(event as unknown as Delivered) });
    },
    ...options,
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  entries.length = 0;
  return {
    sim,
    send: (node: NodeId, payload: string) => sim.command(node, send(payload) as never),
    /** The payloads that a node has delivered, in order. */
    at: (node: NodeId) => delivered.filter((each) => each.node === node).map(({ payload }) => payload),
    /** The times at which a payload was delivered, ascending. */
    times: (of: string) => delivered.filter(({ payload }) => payload === of).map(({ at }) => at),
    ids: (node: NodeId) => delivered.filter((each) => each.node === node).map(({ id }) => id),
    story: () => entries.map((entry) => `${logLine(entry)}\n`).join(""),
  };
}

type Delivered = { payload: string; id: string };

export interface Correspondence {
  readonly nodes: number;
  readonly seed: number;
  readonly orders: readonly Property<MulticastWorkload>[];
  readonly workload?: Partial<MulticastWorkloadOptions>;
}

/** Runs a group with workloads over unordered links with delays of 1 to 40 ms. */
export function correspondence<M extends Vocabulary>(
  protocol: Protocol<M>,
  { nodes, seed, orders, workload = {} }: Correspondence,
): Simulation<MulticastWithWorkload<M>> {
  const sim = simulation<MulticastWithWorkload<M>>({
    protocol: multicastWithWorkload(protocol, [...orders, ...delivery], workload),
    nodes: range(0, nodes - 1),
    seed,
    delayMs: [1, 40],
    link: { order: "none" },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  return sim;
}

/** Explores every run where each node sends this many messages, at any time. */
export function exploreSends<M extends Vocabulary>(
  protocol: Protocol<M>,
  messages: readonly number[],
  {
    orders,
    workload = {},
    ...options
  }: { orders: readonly Property<MulticastWorkload>[]; workload?: Partial<MulticastWorkloadOptions> } & Partial<
    ExploreOptions<MulticastWithWorkload<M>>
  >,
): Exploration<MulticastWithWorkload<M>> {
  return explore<MulticastWithWorkload<M>>({
    protocol: multicastWithWorkload(protocol, [...orders, ...delivery], workload),
    nodes: range(0, messages.length - 1),
    network: "fifo",
    timers: "free",
    begin: "idle",
    asks(node) {
      const count = messages[node] ?? 0;
      return count > 0 ? [use(count)] : [];
    },
    ...options,
  });
}

/** Formats a short counterexample, with lines like `1 receives multicast from 0`. */
export const told = <M extends Vocabulary>({ path }: Exploration<MulticastWithWorkload<M>>): string[] =>
  path.map(({ move }) => inWords(move as never));

function inWords(move: Move<{ state: object; message: Tagged; timer: string; command: Tagged }>): string {
  if (move.kind === "receive") return `${move.node} receives ${typeOf(move.message)} from ${move.from}`;
  if (move.kind === "command") return `${move.node} receives command ${typeOf(move.command)}`;
  if (move.kind === "timeout") return `${move.node} times out`;
  return `${move.node} ${move.kind}`;
}

const typeOf = (said: Tagged): string => unwrapped(said).type;
