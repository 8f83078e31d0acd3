/**
 * Consensus from interactive consistency: all honest nodes have the same vector, so they decide the same by any rule; by the majority of
 * its entries, what all honest nodes propose, for they are more than half.
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

/** What more than half of the entries are; if there is nothing like that, the least. */
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

/** @param values what the nodes propose when they start, by their ids; where there is nothing, values are commands */
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
