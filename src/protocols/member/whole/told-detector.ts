/**
 * A failure detector that is told of crashes, where the checker has one: it suspects nobody else and misses nobody, and it sends
 * nothing, so that no beats stand among what is explored. A node that is heard of again is restored.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { exclude, include } from "../../node-set.ts";

export type ToldDetector = {
  /** Ascending. */
  state: { suspected: NodeId[] };
  command:
    | { type: "suspect"; node: NodeId }
    | { type: "hear"; node: NodeId }
    /** Somebody has begun who is to know who is suspected. */
    | { type: "tell" };
  event: { type: "suspected"; node: NodeId } | { type: "restored"; node: NodeId };
};

export const toldDetector = (): Protocol<ToldDetector> => ({
  name: "told-detector",
  init: () => ({ suspected: [] }),
  command: {
    suspect({ suspected }, { node }, ctx) {
      if (suspected.includes(node)) return;
      include(suspected, node);
      ctx.emit({ type: "suspected", node });
    },
    hear({ suspected }, { node }, ctx) {
      if (!suspected.includes(node)) return;
      exclude(suspected, node);
      ctx.emit({ type: "restored", node });
    },
    tell({ suspected }, _command, ctx) {
      for (const node of suspected) ctx.emit({ type: "suspected", node });
    },
  },
  shapes: { command: { suspect: { node: natural }, hear: { node: natural }, tell: {} } },
  source: "Chandra & Toueg, JACM 1996: a perfect detector",
  assumes: [],
  properties: [],
  costs: [],
  view: ({ suspected }) => ({ role: suspected.length > 0 ? "suspecting" : "calm" }),
});
