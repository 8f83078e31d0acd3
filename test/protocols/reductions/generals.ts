/**
 * Two reductions of Byzantine generals. From interactive consistency: the commander's entry of the vector is its order.
 * From consensus: the commander sends its order to all nodes, and they agree on the received order, since a traitor may
 * send different orders. The opposite reduction, interactive consistency from the generals, is
 * `interactive-consistency.ts` itself.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { PerNode } from "../../../src/core/per-node.ts";
import type { Context, Property, Protocol, World } from "../../../src/core/protocol.ts";
import { perNode } from "../../../src/core/shape.ts";
import {
  type InteractiveConsistency,
  interactiveConsistency,
} from "../../../src/protocols/consensus/interactive-consistency.ts";
import { type Majority, majority } from "./consensus-from-interactive-consistency.ts";
import { atWorkWhile, MAX_NODES, ofAReduction, value } from "./deciding.ts";

export const COMMANDER = 0;

type General = {
  state: { ordered: string | null; obeys: string | null };
  message: { type: "order"; value: string };
  command:
    | { type: "order"; value: string }
    | { type: "choose"; vector: PerNode<string> }
    | { type: "obey"; value: string };
  event: { type: "heard"; value: string } | { type: "obeyed"; value: string };
};

type State = General["state"];

function order(state: State, own: string, tells: boolean, ctx: Context<General>): void {
  if (ctx.self !== COMMANDER || state.ordered !== null) return;
  state.ordered = own;
  if (tells) ctx.broadcast({ type: "order", value: own });
  ctx.emit({ type: "heard", value: own });
}

/** @param first the commander's initial order, or null if commands give the orders */
const general = (tells: boolean, first: string | null): Protocol<General> => ({
  ...ofAReduction,
  name: "general",
  init: () => ({ ordered: null, obeys: null }),
  start(state, ctx) {
    if (first !== null) order(state, first, tells, ctx);
  },
  receive: {
    order(_state, from, { value: told }, ctx) {
      if (from === COMMANDER) ctx.emit({ type: "heard", value: told });
    },
  },
  command: {
    order: (state, { value: own }, ctx) => order(state, own, tells, ctx),
    choose(state, { vector }, ctx) {
      state.obeys = vector[COMMANDER] as string;
      ctx.emit({ type: "obeyed", value: state.obeys });
    },
    obey(state, { value: decided }, ctx) {
      state.obeys = decided;
      ctx.emit({ type: "obeyed", value: decided });
    },
  },
  shapes: {
    message: { order: { value } },
    command: { order: { value }, choose: { vector: perNode(value, MAX_NODES) }, obey: { value } },
  },
  properties: [
    {
      name: "IC1 agreement",
      claim: "all loyal generals obey the same order",
      when: "always",
      holds: ({ alive, state }: World<State>) => new Set(alive.flatMap((node) => state(node).obeys ?? [])).size <= 1,
    },
    {
      name: "IC2 validity",
      claim: "every loyal general obeys the order of a loyal commander",
      when: "always",
      holds({ alive, state }: World<State>) {
        const ordered = alive.includes(COMMANDER) ? state(COMMANDER).ordered : null;
        return ordered === null || alive.every((node) => (state(node).obeys ?? ordered) === ordered);
      },
    },
    {
      name: "termination",
      claim: "eventually, every loyal general obeys some order",
      when: "quiescent",
      holds: ({ alive, state }: World<State>) => alive.every((node) => state(node).obeys !== null),
    },
  ] as Property<General>[],
});

export const generalsFromInteractiveConsistency = (first: string | null = null) =>
  atWorkWhile(
    ["consistency.round"],
    assemble<{ general: General; consistency: InteractiveConsistency }>(
      "generals-from-interactive-consistency",
      { general: general(false, first), consistency: interactiveConsistency() },
      {
        general: { heard: (event, give) => give("consistency", { type: "propose", value: event.value }) },
        consistency: { decided: ({ vector }, give) => give("general", { type: "choose", vector }) },
      },
      { face: "general" },
    ),
  );

/**
 * Uses consensus that tolerates Byzantine nodes. Its first round lasts until the order has arrived and been proposed.
 */
export const generalsFromConsensus = (first: string | null = null) =>
  atWorkWhile(
    ["consistency.round"],
    assemble<{ general: General; consensus: Majority; consistency: InteractiveConsistency }>(
      "generals-from-consensus",
      { general: general(true, first), consensus: majority(), consistency: interactiveConsistency() },
      {
        general: { heard: (event, give) => give("consensus", { type: "propose", value: event.value }) },
        consensus: {
          proposed: (event, give) => give("consistency", { type: "propose", value: event.value }),
          decided: (event, give) => give("general", { type: "obey", value: event.value }),
        },
        consistency: { decided: ({ vector }, give) => give("consensus", { type: "choose", vector }) },
      },
      { face: "general" },
    ),
  );
