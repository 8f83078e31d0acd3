/**
 * The input to the topology drawing: the position and state of each node, and the messages that are in transit or have
 * just arrived.
 */
import type { ClusterPicture, NetworkPicture, NodePicture } from "../../../src/cluster/feed.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import type { ArrangedNode, Arrangement } from "../../../src/protocols/index.ts";
import { spanOf } from "../../../src/protocols/presentation.ts";
import type { Flight } from "../diagram/topology/facts.ts";
import type { Place, Placing } from "../diagram/topology/places.ts";
import { towards } from "../diagram/topology/ways.ts";
import type { Message } from "../history/chronicle.ts";
import type { Life } from "../history/life.ts";
import { briefRole } from "../history/phrase-book.ts";

const conditions = { starting: "down", exited: "down", paused: "paused", running: "up" } as const;

/**
 * Entries arrive with a delay that differs by node. The drawing shows the state this long ago, at the same moment for
 * all nodes, so that a token is always either at one node or in transit.
 */
export const HEARD_WITHIN_MS = 200;

/** Returns the arrangement of a cluster. @param at the moment whose positions are used */
export function arrangementOf(cluster: ClusterPicture, lives: ReadonlyMap<NodeId, Life>, at: number): Arrangement {
  const { presented, nodes } = cluster;
  const rows = presented?.rows ?? nodes.map(({ id }) => id);
  const arranged = rows.flatMap((row): ArrangedNode[] => {
    const node = nodes.find(({ id }) => id === row);
    return node === undefined ? [] : [arrangedNode(cluster, node, lives.get(row), at)];
  });
  return { topology: presented?.topology ?? "complete", nodes: arranged };
}

function arrangedNode(
  { spans }: ClusterPicture,
  { id, process, view }: NodePicture,
  life: Life | undefined,
  at: number,
): ArrangedNode {
  const condition = conditions[process];
  const position = life?.positionAt(at) ?? {};
  return {
    node: id,
    condition,
    role: view?.role ?? "",
    span: condition === "down" || view === null ? null : spanOf(spans, view, id),
    leader: view?.leader ?? position.follows ?? null,
    heldBack: life?.holdBack.now?.length ?? 0,
    position,
  };
}

/** Returns a node's caption: its role, or the state of its process. */
export function captionOf({ process, view, byzantine }: NodePicture): string {
  const role = process === "running" ? briefRole(view?.role ?? process) : process;
  return `${role}${byzantine === undefined ? "" : ", Byzantine"}`;
}

/** How long the line of a message remains visible after the message arrives. */
const AFTERGLOW_MS = 900;
/** Messages that have been in transit for longer than this have ended without being noticed. */
const LONG_MS = 12_000;
/** The maximum number of messages to show. More could not be distinguished. */
const SHOWN = 24;

/** Returns the last message in each direction at a moment. @param messages in nearly chronological order */
export function flightsOf(messages: readonly Message[], carriers: readonly string[], at: number): Flight[] {
  const last = new Map<string, Flight>();
  const begun = messages.filter(({ sentAt, receivedAt }) => (sentAt ?? receivedAt ?? Infinity) <= at);
  for (const { id, from, to, name, sentAt, receivedAt, loss } of begun.slice(-SHOWN)) {
    const endedAt = receivedAt ?? loss?.at ?? Infinity;
    const isOver = endedAt <= at;
    const isShown = isOver ? at - endedAt <= AFTERGLOW_MS : at - (sentAt ?? at) <= LONG_MS;
    if (from === to || !isShown) continue;
    const isCarrier = carriers.includes(name.short);
    const flight = { id, from, to, name: name.full, short: name.short, text: name.full, isCarrier };
    last.set(`${from} ${to}`, isOver ? { ...flight, isOver } : flight);
  }
  return [...last.values()];
}

/** `both`: no message passes. `oneWay`: messages still pass in one direction. */
type Cut = "none" | "oneWay" | "both";

/** A link between two nodes of a topology, as a line from one circle to the other. */
interface Link {
  readonly key: string;
  readonly nodes: readonly [NodeId, NodeId];
  readonly cut: Cut;
  readonly start: Place;
  readonly end: Place;
  /** The two ends of the gap in the middle of a cut link. */
  readonly gap: readonly [Place, Place];
  readonly degrees: number;
}

/** The maximum number of nodes with drawn links: with more, intact links would merge into one gray area. */
const MOST_NODES = 16;
const [BESIDE_PX, GAP_PX] = [2, 9];

export function linksBetween({ places, radius }: Placing, { cuts }: NetworkPicture): Link[] {
  const isCut = (from: NodeId, to: NodeId) => cuts.some(([a, b]) => a === from && b === to);
  const all = [...places];
  const isCrowded = all.length > MOST_NODES;
  return all.flatMap(([a, from], index) =>
    all.slice(index + 1).flatMap(([b, to]): Link[] => {
      const [there, back] = [isCut(a, b), isCut(b, a)];
      const cut: Cut = there && back ? "both" : there || back ? "oneWay" : "none";
      if (cut === "none" && isCrowded) return [];
      const [start, end] = [towards(from, to, radius + BESIDE_PX), towards(to, from, radius + BESIDE_PX)];
      const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
      const gap = [towards(middle, start, GAP_PX / 2), towards(middle, end, GAP_PX / 2)] as const;
      const degrees = (Math.atan2(end.y - start.y, end.x - start.x) * 180) / Math.PI;
      return [{ key: `${Math.min(a, b)}–${Math.max(a, b)}`, nodes: [a, b], cut, start, end, gap, degrees }];
    }),
  );
}
