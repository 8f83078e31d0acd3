/**
 * Defines how an algorithm's runs are displayed: spans, message labels, periodic messages, and a one-sentence summary.
 * The registry has one presentation per algorithm, with defaults from the family. Diagrams, pages and reports use the
 * presentation, so none of them depends on a specific algorithm.
 */
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol, Tagged, View, Vocabulary } from "../core/protocol.ts";

/** A phase that a node stays in for some time. */
export interface Span {
  /** The kind of phase, which determines the mark's color and pattern. */
  readonly kind: "inside" | "waiting" | "leading" | "electing" | "preparing" | "proposing" | "view" | "changing";
  /** A label such as `term 3`. Empty if the kind is self-explanatory. */
  readonly words: string;
}

/**
 * Which phases are marked as spans.
 * - `section`: in the critical section or waiting for it
 * - `leadership`: leading or taking part in an election
 * - `doubt`: has voted but does not know the decision yet
 * - `ballot`: preparing or proposing in its own ballot
 * - `views`: in a view, or between views
 */
export type SpanRule = "section" | "leadership" | "doubt" | "ballot" | "views" | "none";

/** How an algorithm's phases are marked. */
export interface Spans {
  /** The rule that recognizes phases. */
  readonly spans: SpanRule;
  /** The name that the paper uses for a view's `term`. */
  readonly term: string;
}

const ELECTING =
  /^(campaigning|deferring|participant|pre-voting|requesting votes|calling|taking part|candidate|pre-candidate|joining|preparing)/;

const CHANGING = /^(changing|view change)/;

const rules: Readonly<Record<SpanRule, (view: View, node: NodeId, term: string) => Span | null>> = {
  section({ role }) {
    if (role.startsWith("held")) return { kind: "inside", words: "" };
    return role.startsWith("wanted") ? { kind: "waiting", words: "" } : null;
  },
  leadership(view, node, term) {
    const words = view.term === undefined ? "" : `${term} ${view.term}`;
    if (view.leader === node) return { kind: "leading", words };
    return ELECTING.test(view.role) ? { kind: "electing", words: view.role } : null;
  },
  doubt: ({ role }) => (role === "in doubt" ? { kind: "waiting", words: role } : null),
  ballot({ role, term: round }, node, term) {
    const words = `${term} ${round}.${node}`;
    return role === "preparing" || role === "proposing" ? { kind: role, words } : null;
  },
  views(view, node, term) {
    if (CHANGING.test(view.role)) return { kind: "changing", words: "" };
    // In algorithms without leaders, view 0 precedes the first view.
    if (view.term === undefined || (view.term === 0 && view.leader === undefined) || view.role === "outside")
      return null;
    return { kind: view.leader === node ? "leading" : "view", words: `${term} ${view.term}` };
  },
  none: () => null,
};

/** Returns the span for the phase shown in the view. Null if that phase is not marked. */
export function spanOf({ spans, term }: Spans, view: View, node: NodeId): Span | null {
  return rules[spans](view, node, term);
}

/** Whether two spans look the same. */
export const isSameSpan = (a: Span | null, b: Span | null): boolean => a?.kind === b?.kind && a?.words === b?.words;

// Positions: a node's place among the others, its token, its queue and so on, derived from its state. Topology drawings
// use them. Positions are plain data, so a live cluster can send them to a page, and the page does not depend on a
// specific algorithm.

/** A node's position. A field is absent if it does not apply or is unknown. */
export interface Position {
  /** Something that only one node should hold, in one word: `token`, `privilege`. */
  readonly holds?: string;
  /** The nodes with requests waiting for this node to answer, or to get its grant back, in order of arrival. */
  readonly queue?: readonly NodeId[];
  /** The node that holds this node's vote, promise or permission. */
  readonly grantedTo?: NodeId;
  /** The nodes whose votes this node needs, including itself. */
  readonly votingSet?: readonly NodeId[];
  /** The nodes that this node is waiting for, if it knows them. */
  readonly waitsFor?: readonly NodeId[];
  /**
   * The neighbor on the way to the root or the privilege, or the node itself if it is the root or has the privilege. On
   * a star, the center.
   */
  readonly towards?: NodeId;
  /** Coordinates from 0 (inclusive) to 1 (exclusive): one on the identifier circle (clockwise), or two in the plane. */
  readonly at?: readonly number[];
  /**
   * The node that serves this node. Present for algorithms with several leaders, because the views of real processes do
   * not name a leader for them.
   */
  readonly follows?: NodeId;
  /** The start of the node's region of the identifier circle. */
  readonly region?: number;
}

/**
 * Computes a node's position from the run's options and the algorithm's own state, excluding other parts. The state is
 * null if unknown.
 */
export type PositionRule = (state: unknown, node: NodeId, options: unknown) => Position;

/** Creates a position rule from a function that takes one algorithm's state. */
export const positioned =
  <State>(rule: (state: State, node: NodeId) => Position): PositionRule =>
  (state, node) =>
    state === null ? {} : rule(state as State, node);

/** Returns the value stored under the part's name, or the whole value if it has no such part. */
export function partIn(whole: unknown, part: string): unknown {
  const isAssembly = typeof whole === "object" && whole !== null && Object.hasOwn(whole, part);
  return isAssembly ? (whole as Record<string, unknown>)[part] : whole;
}

/** Removes fields that are null or undefined. */
export function present(position: { readonly [K in keyof Position]: Position[K] | null | undefined }): Position {
  return Object.fromEntries(Object.entries(position).filter(([, value]) => value != null)) as Position;
}

/**
 * A real process's view. It includes the position unless that is empty, because the state is not available to other
 * processes.
 */
export type PlacedView = View & { readonly position?: Position };

/** Returns the view, with the leader filled in from the position if the view does not name one. */
export function ledView(view: PlacedView): View {
  const leader = view.leader ?? view.position?.follows;
  return leader === undefined ? view : { ...view, leader };
}

/** Adds positions to a protocol's views. */
export function withPositions<P extends Pick<Protocol<Vocabulary>, "view">>(
  protocol: P,
  rule: PositionRule,
  options: unknown,
): P {
  const view = (state: object, self: NodeId): PlacedView => {
    // Clone the position because it may share arrays with the state, which changes later.
    const [shown, position] = [protocol.view(state, self), clone(rule(state, self, options))];
    return Object.keys(position).length === 0 ? shown : { ...shown, position };
  };
  return { ...protocol, view };
}

/** The arrangement of the nodes in a drawing. */
export type Topology = "complete" | "ring" | "tree" | "star" | "quorums" | "identifier circle" | "plane";

/** How an algorithm's runs are displayed. */
export interface Presentation {
  /** How the nodes are arranged. On a `ring`, the rows of a diagram follow its order. */
  readonly topology: Topology;
  /** Computes a node's position. */
  readonly position: PositionRule;
  /**
   * The short name of each request's reply, keyed by the request's short name. Until it replies, the request's receiver
   * is shown as withholding the reply.
   */
  readonly withheld: Readonly<Record<string, string>>;
  /** Short names of messages that carry the thing named in a position's `holds`. */
  readonly carriers: readonly string[];
  /** The name that the paper uses for a view's `term`. */
  readonly term: string;
  /** Which phases are marked as spans. */
  readonly spans: SpanRule;
  /**
   * The fields that label a message's arrow, at most two, keyed by the message's short name. Default: the first two
   * short fields.
   */
  readonly labels: Readonly<Record<string, readonly [string] | readonly [string, string] | readonly []>>;
  /** Short names of periodic messages, timers and events, which are folded if they change nothing. */
  readonly periodic: readonly string[];
  /** The default duration, in milliseconds, of a displayed run that does not become idle. */
  readonly untilMs: number;
  /** Summarizes the run's state in one sentence. */
  headline(scene: Scene): string;
}

/** A run's nodes and events up to one moment. */
export interface Scene {
  /** The nodes, in ascending order. */
  readonly nodes: readonly ShownNode[];
  /** All events so far, in order. An event with `times` is the last in a series of that many equal events. */
  readonly events: readonly { readonly node: NodeId; readonly event: Tagged; readonly times?: number }[];
}

/** A node in a scene. */
export interface ShownNode {
  /** The node's id. */
  readonly node: NodeId;
  /** Whether the node is running, stopped or paused. */
  readonly condition: "up" | "down" | "paused";
  /** The node's view. Null if unknown. */
  readonly view: View | null;
}

/**
 * Returns the node ids in the order of a diagram's rows, from top to bottom. `options`: the protocol's options, which
 * may define a ring.
 */
export function rowsOf({ topology }: Presentation, nodes: readonly NodeId[], options: unknown): readonly NodeId[] {
  const ring = topology === "ring" ? ringIn(options) : null;
  return ring !== null && ring.length === nodes.length && ring.every((node) => nodes.includes(node)) ? ring : nodes;
}

/** Finds the ring in the options of the protocol or of one of its parts. */
function ringIn(options: unknown): readonly NodeId[] | null {
  if (typeof options !== "object" || options === null) return null;
  const places = [options, ...Object.values(options)];
  for (const place of places) {
    const ring = typeof place === "object" && place !== null ? (place as { ring?: unknown }).ring : undefined;
    if (Array.isArray(ring)) return ring as readonly NodeId[];
  }
  return null;
}

/** The nodes arranged for a topology drawing. */
export interface Arrangement {
  /** The shape of the drawing. */
  readonly topology: Topology;
  /** The nodes in drawing order, which is clockwise on a ring. */
  readonly nodes: readonly ArrangedNode[];
}

/** A node in an arrangement. */
export interface ArrangedNode {
  /** The node's id. */
  readonly node: NodeId;
  /** Whether the node is running, stopped or paused. */
  readonly condition: "up" | "down" | "paused";
  /** The protocol's term for the node's current activity. */
  readonly role: string;
  /** The phase that the node is in. Null if that phase is not marked. */
  readonly span: Span | null;
  /** The leader that this node follows. Null if it has none, or if the algorithm has no leaders. */
  readonly leader: NodeId | null;
  /** The number of messages that the node is holding back. */
  readonly heldBack: number;
  /** The node's position in the algorithm's structure. */
  readonly position: Position;
}

interface Moment {
  readonly scene: Scene;
  /** All nodes, in the order of a diagram's rows. */
  readonly rows: readonly NodeId[];
  /** Returns the whole protocol's state. Null if unknown. */
  state(node: NodeId): unknown;
  readonly options: unknown;
}

/** Arranges the nodes of a run at one moment, with their spans and positions. */
export function arrangementOf(presentation: Presentation, { scene, rows, state, options }: Moment): Arrangement {
  const shown = new Map(scene.nodes.map((each) => [each.node, each]));
  const nodes = rows.map((node): ArrangedNode => {
    const { condition = "down", view = null } = shown.get(node) ?? {};
    return {
      node,
      condition,
      role: view?.role ?? "",
      span: condition === "down" || view === null ? null : spanOf(presentation, view, node),
      leader: view?.leader ?? null,
      heldBack: view?.held?.length ?? 0,
      position: presentation.position(state(node), node, options),
    };
  });
  return { topology: presentation.topology, nodes };
}
