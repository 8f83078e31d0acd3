/**
 * How a run of an algorithm is shown: what lasts, what is worth a label, what only keeps coming, and what has become of
 * it in one sentence. The registry has one of each algorithm. Its family's is the default, so a new one needs to declare
 * none. Pictures, pages and reports all draw by it; none of them knows an algorithm.
 */
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol, Tagged, View, Vocabulary } from "../core/protocol.ts";

export interface Span {
  readonly kind: "inside" | "waiting" | "leading" | "electing" | "preparing" | "proposing" | "view" | "changing";
  /** Such as `term 3`; empty where the kind says it all. */
  readonly words: string;
}

/**
 * `section`: in the critical section or waiting for it; `leadership`: leading or in an election; `doubt`: voted and not told;
 * `ballot`: preparing or proposing, in a ballot of its own; `views`: in a view, or between two.
 */
export type SpanRule = "section" | "leadership" | "doubt" | "ballot" | "views" | "none";

export interface Spans {
  readonly spans: SpanRule;
  /** What a view's `term` is called in the paper. */
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
    // Where nobody leads, view 0 is the one before the first.
    if (view.term === undefined || (view.term === 0 && view.leader === undefined) || view.role === "outside")
      return null;
    return { kind: view.leader === node ? "leading" : "view", words: `${term} ${view.term}` };
  },
  none: () => null,
};

/** What a node is in as long as it looks like this; null: nothing that deserves a mark. */
export function spanOf({ spans, term }: Spans, view: View, node: NodeId): Span | null {
  return rules[spans](view, node, term);
}

export const isSameSpan = (a: Span | null, b: Span | null): boolean => a?.kind === b?.kind && a?.words === b?.words;

// Where a node stands among the others, what it has and what it waits for, told from its state: what the drawing of a
// topology is made from. Plain data, so a page of a live cluster can be sent it, and no reader knows an algorithm.

/** What is left out is not so, or not known. */
export interface Position {
  /** What it has that only one node should have, in a word: `token`, `privilege`. */
  readonly holds?: string;
  /** Whose requests wait until this node answers, or has back what it gave. First come first. */
  readonly queue?: readonly NodeId[];
  /** Who has what this node gives: its vote, its promise, the permission. */
  readonly grantedTo?: NodeId;
  /** Whose vote it needs, its own among them. */
  readonly votingSet?: readonly NodeId[];
  /** The nodes that it waits for, where it knows that itself. */
  readonly waitsFor?: readonly NodeId[];
  /** The neighbour towards the root or the privilege; on a star the one in the middle. Itself, if it is there. */
  readonly towards?: NodeId;
  /** On the identifier circle one number, clockwise; on the plane two. From 0 to below 1. */
  readonly at?: readonly number[];
  /** Who serves it, where there are many that serve, and a picture of a real process names no leader. */
  readonly follows?: NodeId;
  /** Where the part of the identifier circle begins to which the node belongs. */
  readonly region?: number;
}

/** Of a node, by the state of the algorithm itself, without the parts beside it (null: not known), and the options of the run. */
export type PositionRule = (state: unknown, node: NodeId, options: unknown) => Position;

/** A rule for the states of one algorithm. */
export const positioned =
  <State>(rule: (state: State, node: NodeId) => Position): PositionRule =>
  (state, node) =>
    state === null ? {} : rule(state as State, node);

/** What stands under the name of a part; the whole, where there is no such part. */
export function partIn(whole: unknown, part: string): unknown {
  const isAssembly = typeof whole === "object" && whole !== null && Object.hasOwn(whole, part);
  return isAssembly ? (whole as Record<string, unknown>)[part] : whole;
}

/** With what there is alone. */
export function present(position: { readonly [K in keyof Position]: Position[K] | null | undefined }): Position {
  return Object.fromEntries(Object.entries(position).filter(([, value]) => value != null)) as Position;
}

/** The picture of a real process, whose state nobody else has: it tells where the node stands, too, if that is anything special. */
export type PlacedView = View & { readonly position?: Position };

/** With the leader that only the position names. */
export function ledView(view: PlacedView): View {
  const leader = view.leader ?? view.position?.follows;
  return leader === undefined ? view : { ...view, leader };
}

/** The protocol with such pictures. */
export function withPositions<P extends Pick<Protocol<Vocabulary>, "view">>(
  protocol: P,
  rule: PositionRule,
  options: unknown,
): P {
  const view = (state: object, self: NodeId): PlacedView => {
    // It may be a piece of the state, which goes on changing.
    const [shown, position] = [protocol.view(state, self), clone(rule(state, self, options))];
    return Object.keys(position).length === 0 ? shown : { ...shown, position };
  };
  return { ...protocol, view };
}

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

export interface Arrangement {
  readonly topology: Topology;
  /** In the order in which they stand: on a ring, clockwise. */
  readonly nodes: readonly ArrangedNode[];
}

export interface ArrangedNode {
  readonly node: NodeId;
  readonly condition: "up" | "down" | "paused";
  readonly role: string;
  readonly span: Span | null;
  /** Who leads in its eyes; null where it knows of nobody, or the algorithm of no leaders. */
  readonly leader: NodeId | null;
  /** How many messages it holds back. */
  readonly heldBack: number;
  readonly position: Position;
}

interface Moment {
  readonly scene: Scene;
  /** All nodes, in the order of the rows of a diagram. */
  readonly rows: readonly NodeId[];
  /** Of the whole protocol; null where it is not known. */
  state(node: NodeId): unknown;
  readonly options: unknown;
}

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
