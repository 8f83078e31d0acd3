/**
 * How runs of an algorithm are displayed: its spans, the labels of its messages, its periodic messages, and a
 * one-sentence
 * summary. The registry has one presentation per algorithm, and the family provides the defaults. Diagrams, pages and
 * reports
 * are drawn from it, so that none of them depends on an algorithm.
 */
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol, Tagged, View, Vocabulary } from "../core/protocol.ts";

/** A phase that a node is in for some time. */
export interface Span {
  readonly kind: "inside" | "waiting" | "leading" | "electing" | "preparing" | "proposing" | "view" | "changing";
  /** A label such as `term 3`. Empty if the kind says it all. */
  readonly words: string;
}

/**
 * Which phases are marked as spans.
 * - `section`: in the critical section or waiting for it
 * - `leadership`: leading or in an election
 * - `doubt`: voted and not yet informed of the decision
 * - `ballot`: preparing or proposing in its own ballot
 * - `views`: in a view, or between two views
 */
export type SpanRule = "section" | "leadership" | "doubt" | "ballot" | "views" | "none";

export interface Spans {
  readonly spans: SpanRule;
  /** The name of a view's `term` in the paper. */
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

/** The span that the view shows. Null if it shows nothing worth a mark. */
export function spanOf({ spans, term }: Spans, view: View, node: NodeId): Span | null {
  return rules[spans](view, node, term);
}

export const isSameSpan = (a: Span | null, b: Span | null): boolean => a?.kind === b?.kind && a?.words === b?.words;

// Positions: a node's place among the others, its token, its queue and so on, derived from its state. Topology drawings
// use them. They are plain data, so a live cluster can send them to a page, and readers do not depend on an algorithm.

/** A node's position. An absent field does not apply or is unknown. */
export interface Position {
  /** Something that only one node should hold, in one word: `token`, `privilege`. */
  readonly holds?: string;
  /** Nodes whose requests wait until this node answers or gets its grant back, in order of arrival. */
  readonly queue?: readonly NodeId[];
  /** The node that holds this node's vote, promise or permission. */
  readonly grantedTo?: NodeId;
  /** The nodes whose votes it needs, including itself. */
  readonly votingSet?: readonly NodeId[];
  /** The nodes that it waits for, if it knows them. */
  readonly waitsFor?: readonly NodeId[];
  /** The neighbor toward the root or the privilege; on a star, the center. The node itself if it is there. */
  readonly towards?: NodeId;
  /** Coordinates from 0 to below 1: one clockwise on the identifier circle, two on the plane. */
  readonly at?: readonly number[];
  /** The node that serves it, for algorithms with several leaders, when a real process's view names no leader. */
  readonly follows?: NodeId;
  /** The start of the node's region of the identifier circle. */
  readonly region?: number;
}

/** Computes a node's position from the algorithm's own state, without other parts (null: unknown), and the options of the run. */
export type PositionRule = (state: unknown, node: NodeId, options: unknown) => Position;

/** Creates a rule for the states of one algorithm. */
export const positioned =
  <State>(rule: (state: State, node: NodeId) => Position): PositionRule =>
  (state, node) =>
    state === null ? {} : rule(state as State, node);

/** The value under the name of a part, or the whole value if it has no such part. */
export function partIn(whole: unknown, part: string): unknown {
  const isAssembly = typeof whole === "object" && whole !== null && Object.hasOwn(whole, part);
  return isAssembly ? (whole as Record<string, unknown>)[part] : whole;
}

/** Removes fields that are null or undefined. */
export function present(position: { readonly [K in keyof Position]: Position[K] | null | undefined }): Position {
  return Object.fromEntries(Object.entries(position).filter(([, value]) => value != null)) as Position;
}

/** The view of a real process, whose state no other process has. It includes the position unless that is empty. */
export type PlacedView = View & { readonly position?: Position };

/** Fills in a leader that only the position names. */
export function ledView(view: PlacedView): View {
  const leader = view.leader ?? view.position?.follows;
  return leader === undefined ? view : { ...view, leader };
}

/** Adds positions to the views of a protocol. */
export function withPositions<P extends Pick<Protocol<Vocabulary>, "view">>(
  protocol: P,
  rule: PositionRule,
  options: unknown,
): P {
  const view = (state: object, self: NodeId): PlacedView => {
    // Cloned because the position may share arrays with the state, which keeps changing.
    const [shown, position] = [protocol.view(state, self), clone(rule(state, self, options))];
    return Object.keys(position).length === 0 ? shown : { ...shown, position };
  };
  return { ...protocol, view };
}

/** The arrangement of the nodes in a drawing. */
export type Topology = "complete" | "ring" | "tree" | "star" | "quorums" | "identifier circle" | "plane";

/** How an algorithm is displayed. */
export interface Presentation {
  /** How the nodes are arranged. On a `ring`, the rows of a diagram follow its order. */
  readonly topology: Topology;
  /** Computes a node's position. */
  readonly position: PositionRule;
  /** Maps a request's short name to its reply's. Between the two, the receiver is shown as withholding the reply. */
  readonly withheld: Readonly<Record<string, string>>;
  /** Short names of messages that carry the thing that a position `holds`. */
  readonly carriers: readonly string[];
  /** The name of a view's `term` in the paper. */
  readonly term: string;
  /** The phases that are marked as spans. */
  readonly spans: SpanRule;
  /** For each message's short name, at most two fields that label its arrow. Default: the first two short fields. */
  readonly labels: Readonly<Record<string, readonly [string] | readonly [string, string] | readonly []>>;
  /** Short names of periodic messages, timers and events. They are folded if they change nothing. */
  readonly periodic: readonly string[];
  /** The default duration of a displayed run that does not become idle, in milliseconds. */
  readonly untilMs: number;
  /** Summarizes the state of the run in one sentence. */
  headline(scene: Scene): string;
}

/** A run at one moment. */
/** The nodes and events of a run up to one moment. */
export interface Scene {
  /** Ascending. */
  readonly nodes: readonly ShownNode[];
  /** All events so far, in order. An event with `times` represents that many equal events and is the last of them. */
  readonly events: readonly { readonly node: NodeId; readonly event: Tagged; readonly times?: number }[];
}

/** A node in a scene. */
export interface ShownNode {
  readonly node: NodeId;
  readonly condition: "up" | "down" | "paused";
  /** Null if its view is unknown. */
  readonly view: View | null;
}

/** The ids of the nodes from top to bottom. `options` are the protocol's options, which may define a ring. */
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
  readonly topology: Topology;
  /** In drawing order: clockwise on a ring. */
  readonly nodes: readonly ArrangedNode[];
}

/** A node in an arrangement. */
export interface ArrangedNode {
  readonly node: NodeId;
  readonly condition: "up" | "down" | "paused";
  readonly role: string;
  readonly span: Span | null;
  /** The leader that this node knows. Null if it knows none, or the algorithm has no leaders. */
  readonly leader: NodeId | null;
  /** The number of messages that it holds back. */
  readonly heldBack: number;
  readonly position: Position;
}

interface Moment {
  readonly scene: Scene;
  /** All nodes, in the order of the rows of a diagram. */
  readonly rows: readonly NodeId[];
  /** The state of the whole protocol. Null if unknown. */
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
