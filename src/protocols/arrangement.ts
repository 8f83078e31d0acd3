/** A run at one moment as its topology is drawn: how nodes stand to each other, what each is in, has and waits for. Plain data. */
import type { NodeId } from "../core/protocol.ts";
import type { Position } from "./position.ts";
import type { Presentation, Scene, Topology } from "./presentation.ts";
import { type Span, spanOf } from "./spans.ts";

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
