/**
 * Skeleton algorithm: in one sentence, which value is decided and why.
 * The paper, with year and section.
 *
 * Assumes   no crashes; reliable links.
 * Safety    agreement: no two nodes decide differently. Validity: a decided value was proposed.
 * Liveness  termination: a node that has proposed decides.
 * Cost      at most N messages: one to the lowest node, and N − 1 from it.
 *
 * Placeholder until you write the algorithm: the lowest node decides the first proposal that it receives.
 */
import type { Context, Protocol } from "../../src/core/protocol.ts";
import { text } from "../../src/core/shape.ts";

/** The types of the skeleton algorithm: its state, messages, commands and events. */
export type SkeletonAlgorithm = {
  state: { proposed: string | null; decided: string | null };
  message: { type: "propose"; value: string } | { type: "decided"; value: string };
  command: { type: "propose"; value: string };
  event: { type: "decided"; value: string };
};

const valueShape = text(65_536);

type State = SkeletonAlgorithm["state"];
type Ctx = Context<SkeletonAlgorithm>;

/** Decides one of the proposed values. */
export function skeletonAlgorithm(): Protocol<SkeletonAlgorithm> {
  function decide(state: State, value: string, ctx: Ctx): void {
    state.decided = value;
    ctx.emit({ type: "decided", value });
  }

  /** Decides a value. Called on the lowest node. */
  function choose(state: State, value: string, ctx: Ctx): void {
    if (state.decided !== null) return; // Another proposal was decided first.
    decide(state, value, ctx);
    ctx.broadcast({ type: "decided", value });
  }

  return {
    name: "skeleton-algorithm",
    init: () => ({ proposed: null, decided: null }),
    receive: {
      propose: (state, _from, { value }, ctx) => choose(state, value, ctx),
      decided(state, _from, { value }, ctx) {
        if (state.decided === null) decide(state, value, ctx);
      },
    },
    command: {
      propose(state, { value }, ctx) {
        if (state.decided !== null || state.proposed !== null) return; // Already decided, or already proposed.
        state.proposed = value;
        const lowest = Math.min(ctx.self, ...ctx.peers);
        if (lowest === ctx.self) choose(state, value, ctx);
        else ctx.send(lowest, { type: "propose", value });
      },
    },
    shapes: {
      message: { propose: { value: valueShape }, decided: { value: valueShape } },
      command: { propose: { value: valueShape } },
    },
    source: "the paper, with year and section",
    assumes: ["no crashes", "reliable links"],
    properties: [
      {
        name: "agreement",
        claim: "no two nodes decide differently",
        when: "always",
        holds: ({ alive, state }) =>
          new Set(alive.map((node) => state(node).decided).filter((value) => value !== null)).size <= 1,
      },
      {
        name: "termination",
        claim: "a node that has proposed decides",
        when: "leadsTo",
        given: ({ state }, node) => state(node).proposed !== null,
        holds: ({ state }, node) => state(node).decided !== null,
      },
    ],
    costs: [{ when: "one proposal, by a node other than the lowest", messages: (nodes) => nodes }],
    view: ({ proposed, decided }) => ({
      role: decided !== null ? "decided" : proposed !== null ? "proposing" : "idle",
    }),
  };
}
