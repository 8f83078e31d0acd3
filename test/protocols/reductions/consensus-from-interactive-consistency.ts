/**
 * Consensus from interactive consistency. All honest nodes have the same vector, so any common rule decides the same
 * value. This rule takes the value of a majority of the entries: if all honest nodes propose the same value, it is
 * decided, because honest nodes are a majority.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { PerNode } from "../../../src/core/per-node.ts";
import type { Context, Protocol } from "../../../src/core/protocol.ts";
import { perNode } from "../../../src/core/shape.ts";
import {
  type InteractiveConsistency,
  interactiveConsistency,
} from "../../../src/protocols/consensus/interactive-consistency.ts";
import {
  atWorkWhile,
  consensusProperties,
  type Deciding,
  MAX_NODES,
  ofAReduction,
  unanimity,
  undecided,
  value,
} from "./deciding.ts";

export type Majority = {
  state: Deciding;
  command: { type: "propose"; value: string } | { type: "choose"; vector: PerNode<string> };
  event: { type: "proposed"; value: string } | { type: "decided"; value: string };
};

/** Returns the value of more than half of the entries, or the smallest value if there is none. */
export function chosenOf(vector: PerNode<string>): string {
  const entries = Object.values(vector).sort();
  const most = entries.find((each) => 2 * entries.filter((other) => other === each).length > entries.length);
  return most ?? (entries[0] as string);
}

function propose(state: Deciding, own: string, ctx: Context<Majority>): void {
  if (state.proposed !== null) return;
  state.proposed = own;
  ctx.emit({ type: "proposed", value: own });
}

/** @param values the initial proposals, indexed by node id. A node without one proposes by command. */
export const majority = (values: readonly string[] = []): Protocol<Majority> => ({
  ...ofAReduction,
  name: "majority",
  init: undecided,
  start(state, ctx) {
    const own = values[ctx.self];
    if (own !== undefined) propose(state, own, ctx);
  },
  command: {
    propose: (state, { value: own }, ctx) => propose(state, own, ctx),
    choose(state, { vector }, ctx) {
      state.decided = chosenOf(vector);
      ctx.emit({ type: "decided", value: state.decided });
    },
  },
  shapes: { command: { propose: { value }, choose: { vector: perNode(value, MAX_NODES) } } },
  properties: [...consensusProperties<Majority>(), unanimity],
});

export const consensusFromInteractiveConsistency = (values: readonly string[] = []) =>
  atWorkWhile(
    ["consistency.round"],
    assemble<{ consensus: Majority; consistency: InteractiveConsistency }>(
      "consensus-from-interactive-consistency",
      { consensus: majority(values), consistency: interactiveConsistency() },
      {
        consensus: { proposed: (event, give) => give("consistency", { type: "propose", value: event.value }) },
        consistency: { decided: ({ vector }, give) => give("consensus", { type: "choose", vector }) },
      },
      { face: "consensus" },
    ),
  );
