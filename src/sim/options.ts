/** What a simulation is told when it is made. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { EventOf, NodeId, Protocol, Vocabulary } from "../core/protocol.ts";
import type { ByzantineBehaviour } from "../protocols/byzantine.ts";
import {
  callback,
  fields,
  isObject,
  needed,
  nodes,
  oneOf,
  protocol,
  type Rule,
  type Rules,
  requireOptions,
} from "../protocols/known-options.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { type Delay, type LinkModel, requireDelay } from "../trace/link-model.ts";
import { Draws } from "./draws.ts";

export interface SimulationOptions<V extends Vocabulary> {
  readonly protocol: Protocol<V>;
  readonly nodes: readonly NodeId[];
  /** An integer from 0 to 2³² − 1. */
  readonly seed: number;
  /** How long a message travels, on every link unless `link` or `links` say otherwise. */
  readonly delayMs: Delay;
  /** What else is true of every link. Unless said, links lose and duplicate nothing, keep the order and have no rate. */
  readonly link?: Partial<LinkModel>;
  /** What is true of one link; the last that speaks of it counts. */
  readonly links?: readonly ({ readonly from: NodeId; readonly to: NodeId } & Partial<LinkModel>)[];
  /** How long a node is busy with one stimulus: what it sends leaves when it is done, and other stimuli wait in order. */
  readonly processingMs?: Delay;
  /** How long it takes until a journalled record is durable, unless the node sends, emits or answers something before. 0 by default. */
  readonly syncMs?: number;
  /** Receives every entry of the trace. Without it, none is made. */
  readonly trace?: (entry: TraceEntry<V>) => void;
  /** Receives what nodes emit, as it happens. */
  readonly onEvent?: (at: number, node: NodeId, event: EventOf<V>) => void;
  /** When properties are looked at: `at the end` is faster, and only `verdict()` looks. */
  readonly properties?: "every step" | "at the end";
  /** Nodes that lie, and how. The properties then speak of the others alone. */
  readonly byzantine?: ReadonlyMap<NodeId, ByzantineBehaviour>;
  /** Keeps what is drawn, and draws alike what another run has drawn on the same occasion. */
  readonly draws?: Draws;
}

/** What it is made of is looked at where it is used, and refused there in its own words. */
const anything: Rule = { wanted: "anything", accepts: () => true };

const rules: Rules<SimulationOptions<Vocabulary>> = {
  protocol: needed(protocol),
  nodes: needed(nodes),
  seed: needed({
    wanted: "a whole number from 0 to 4294967295",
    accepts: (value) => typeof value === "number" && value === value >>> 0,
  }),
  delayMs: anything,
  link: fields,
  links: { wanted: "a list of links", accepts: (value) => Array.isArray(value) && value.every(isObject) },
  processingMs: anything,
  syncMs: {
    wanted: "a finite number of 0 or more",
    accepts: (value) => Number.isFinite(value) && (value as number) >= 0,
  },
  trace: callback,
  onEvent: callback,
  properties: oneOf("every step", "at the end"),
  draws: { wanted: "the draws of a run", accepts: (value) => value instanceof Draws },
  byzantine: { wanted: "a Map of nodes to what they do", accepts: (value) => value instanceof Map },
};

/** Refuses what is unknown or out of range. Links are looked at where they are made. @throws UsageError */
export function requireSimulationOptions<V extends Vocabulary>(options: SimulationOptions<V>): void {
  requireOptions("simulation", options, rules);
  const { nodes, delayMs, processingMs = 0, byzantine } = options;
  requireDelay(delayMs, "delayMs of simulation()");
  requireDelay(processingMs, "processingMs of simulation()");
  const stray = [...(byzantine?.keys() ?? [])].find((node) => !nodes.includes(node));
  if (stray !== undefined)
    throw new UsageError(
      "bad-option",
      unexpected("the nodes in byzantine of simulation()", `among ${nodes.join(", ")}`, stray),
    );
}
