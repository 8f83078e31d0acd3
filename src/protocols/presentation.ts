/**
 * How a run of an algorithm is shown: what lasts, what is worth a label, what only keeps coming, and what has become of
 * it in one sentence. The registry has one of each algorithm. Its family's is the default, so a new one needs to declare
 * none. Pictures, pages and reports all draw by it; none of them knows an algorithm.
 */
import type { NodeId, Tagged, View } from "../core/protocol.ts";
import type { PositionRule } from "./position.ts";
import type { SpanRule } from "./spans.ts";

export type Topology = "complete" | "ring" | "tree" | "star" | "quorums" | "identifier circle" | "plane";

export interface Presentation {
  /** How the nodes stand to each other. On a `ring` the rows of a diagram are in its order. */
  readonly topology: Topology;
  /** What a node has, what it waits for and where it is. */
  readonly position: PositionRule;
  /** By a request's short name that of its answer: between both it is held back at the node that received it. */
  readonly withheld: Readonly<Record<string, string>>;
  /** Short names of messages that carry what a position `holds`. */
  readonly carriers: readonly string[];
  /** What a view's `term` is called in the paper. */
  readonly term: string;
  /** Which of its states last and deserve a mark. */
  readonly spans: SpanRule;
  /** By a message's short name, the fields that label its arrow, two at most. Of others the first two that are short. */
  readonly labels: Readonly<Record<string, readonly [string] | readonly [string, string] | readonly []>>;
  /** Short names of messages, timers and events that keep coming. Where they change nothing they are folded. */
  readonly periodic: readonly string[];
  /** So long a run is shown that does not come to rest, in milliseconds, unless somebody says. */
  readonly untilMs: number;
  /** How things stand, as a sentence. */
  headline(scene: Scene): string;
}

/** A run at one moment. */
export interface Scene {
  /** Ascending. */
  readonly nodes: readonly ShownNode[];
  /** What has been emitted so far, in order. One with `times` stands for so many alike, of which it is the last. */
  readonly events: readonly { readonly node: NodeId; readonly event: Tagged; readonly times?: number }[];
}

export interface ShownNode {
  readonly node: NodeId;
  readonly condition: "up" | "down" | "paused";
  /** Null while nothing is known of it. */
  readonly view: View | null;
}

/** The ids of the nodes from top to bottom. `options` are those of the protocol, where a ring is written. */
export function rowsOf({ topology }: Presentation, nodes: readonly NodeId[], options: unknown): readonly NodeId[] {
  const ring = topology === "ring" ? ringIn(options) : null;
  return ring !== null && ring.length === nodes.length && ring.every((node) => nodes.includes(node)) ? ring : nodes;
}

/** In the options of the protocol, or of one of its parts. */
function ringIn(options: unknown): readonly NodeId[] | null {
  if (typeof options !== "object" || options === null) return null;
  const places = [options, ...Object.values(options)];
  for (const place of places) {
    const ring = typeof place === "object" && place !== null ? (place as { ring?: unknown }).ring : undefined;
    if (Array.isArray(ring)) return ring as readonly NodeId[];
  }
  return null;
}
