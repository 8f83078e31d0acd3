/** The options of a simulation. */
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

/** Options of `simulation`. */
export interface SimulationOptions<V extends Vocabulary> {
  /** The protocol that every node runs. */
  readonly protocol: Protocol<V>;
  /** The ids of all nodes. All nodes are down until they are started with `start` or `wake`. */
  readonly nodes: readonly NodeId[];
  /** The seed of all random choices, an integer from 0 to 2³² − 1. Equal seeds and options give equal runs. */
  readonly seed: number;
  /** How long messages take to arrive, in milliseconds, unless `link` or `links` sets another delay. */
  readonly delayMs: Delay;
  /**
   * The model of every link. By default, links keep messages in order, do not lose or duplicate them, and have
   * unlimited bandwidth.
   */
  readonly link?: Partial<LinkModel>;
  /** Models of individual links. If a link is listed twice, the last model applies. */
  readonly links?: readonly ({ readonly from: NodeId; readonly to: NodeId } & Partial<LinkModel>)[];
  /**
   * How long a node is busy with one stimulus, in milliseconds. Its messages leave at the end of that time, and other
   * stimuli wait in order.
   */
  readonly processingMs?: Delay;
  /**
   * How long it takes until a record becomes durable, in milliseconds. A record becomes durable earlier if the node
   * sends, emits or answers something before then. Default: 0.
   */
  readonly syncMs?: number;
  /** Receives every entry of the trace. If omitted, the simulation creates no entries. */
  readonly trace?: (entry: TraceEntry<V>) => void;
  /** Receives the events that nodes emit, as they happen. */
  readonly onEvent?: (at: number, node: NodeId, event: EventOf<V>) => void;
  /** When properties are evaluated. `at the end` is faster: only `verdict()` evaluates them. Default: `every step`. */
  readonly properties?: "every step" | "at the end";
  /** The Byzantine nodes and the behavior of each. If there are any, properties concern only the other nodes. */
  readonly byzantine?: ReadonlyMap<NodeId, ByzantineBehaviour>;
  /** Records the random draws, and repeats another run's draws on the same occasions. */
  readonly draws?: Draws;
}

/** Accepts any value. The code that uses the option validates it and produces more specific messages. */
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
  byzantine: { wanted: "a Map from node to behavior", accepts: (value) => value instanceof Map },
};

/**
 * Rejects unknown options and out-of-range values. Links are validated when they are created.
 * @throws UsageError if an option is invalid
 */
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
