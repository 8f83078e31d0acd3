/** What a simulation is told when it is made. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { EventOf, NodeId, Protocol, Vocabulary } from "../core/protocol.ts";
import type { ByzantineBehaviour } from "../protocols/byzantine.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { type Delay, requireDelay } from "./delay.ts";
import type { LinkModel } from "./links.ts";

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
  /** How long it takes until a journalled record is durable, unless the node sends something before. 0 by default. */
  readonly syncMs?: number;
  /** Receives every entry of the trace. Without it, none is made. */
  readonly trace?: (entry: TraceEntry<V>) => void;
  /** Receives what nodes emit, as it happens. */
  readonly onEvent?: (at: number, node: NodeId, event: EventOf<V>) => void;
  /** When properties are looked at: `at the end` is faster, and only `verdict()` looks. */
  readonly properties?: "every step" | "at the end";
  /** Nodes that lie, and how. The properties then speak of the others alone. */
  readonly byzantine?: ReadonlyMap<NodeId, ByzantineBehaviour>;
}

/** Refuses what is out of range. Links are looked at where they are made. @throws UsageError */
export function requireOptions<V extends Vocabulary>(options: SimulationOptions<V>): void {
  const { nodes, seed, delayMs, processingMs = 0, syncMs = 0, properties = "every step", byzantine } = options;
  const refuse = (what: string, expected: string, got: unknown): never => {
    throw new UsageError("bad-simulation", unexpected(what, expected, got));
  };
  const stray = nodes.find((node) => !(Number.isSafeInteger(node) && node >= 0));
  if (stray !== undefined) refuse("the nodes", "natural numbers", stray);
  if (nodes.length === 0 || new Set(nodes).size !== nodes.length) refuse("the nodes", "at least one, each once", nodes);
  if (seed !== seed >>> 0) refuse("the seed", "an integer from 0 to 4294967295", seed);
  requireDelay(delayMs, "delayMs");
  requireDelay(processingMs, "processingMs");
  if (!(Number.isFinite(syncMs) && syncMs >= 0)) refuse("syncMs", "a finite number >= 0", syncMs);
  for (const node of byzantine?.keys() ?? [])
    if (!nodes.includes(node)) refuse("the Byzantine node", `one of ${nodes.join(", ")}`, node);
  if (properties !== "every step" && properties !== "at the end")
    refuse("properties", "every step or at the end", properties);
}
