/**
 * Skeleton algorithm: in one sentence, the problem and the idea.
 *
 * Placeholder until you write the algorithm: every node learns the highest number that any node has announced.
 */
import type { Protocol } from "../../src/core/protocol.ts";
import { natural } from "../../src/core/shape.ts";
import { defineProtocol } from "../../src/protocols/define.ts";

/** The types of the skeleton algorithm: its state, messages, commands and events. */
export type SkeletonAlgorithm = {
  state: { own: number; highest: number; isAnnounced: boolean };
  message: { type: "announce"; value: number };
  command: { type: "begin" };
  event: { type: "learned"; value: number };
};

/** Finds the highest number. */
export const skeletonAlgorithm: Protocol<SkeletonAlgorithm> = {
  name: "skeleton-algorithm",
  init: (self) => ({ own: 10 * self, highest: 10 * self, isAnnounced: false }),
  receive: {
    announce(state, _from, { value }, ctx) {
      if (value <= state.highest) return;
      state.highest = value;
      ctx.emit({ type: "learned", value });
    },
  },
  command: {
    begin(state, _command, ctx) {
      state.isAnnounced = true;
      ctx.broadcast({ type: "announce", value: state.own });
    },
  },
  shapes: { message: { announce: { value: natural } }, command: { begin: {} } },
  source: "the paper, with year and section",
  assumes: ["no crashes", "reliable links"],
  properties: [
    {
      name: "agreement",
      claim: "once every node has announced its number and no message is in transit, all nodes know the same number",
      when: "quiescent",
      holds: ({ alive, state }) =>
        alive.some((node) => !state(node).isAnnounced) || new Set(alive.map((node) => state(node).highest)).size === 1,
    },
  ],
  costs: [{ when: "every node announces its number", messages: (nodes) => nodes * (nodes - 1) }],
  view: ({ highest }) => ({ role: `knows ${highest}` }),
};

export default defineProtocol({
  protocol: skeletonAlgorithm,
  summary: "one-line summary",
  command: { type: "begin" },
  done: "learned",
});
