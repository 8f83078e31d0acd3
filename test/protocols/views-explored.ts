/** Views without a layer above, for the checker. */
import { expect } from "vitest";
import type { ExploreOptions } from "../../src/check/explore.ts";
import { Model, type Move } from "../../src/check/model.ts";
import { type Assembly, assemble } from "../../src/core/assemble.ts";
import type { CommandOf, NodeId, Property, Protocol } from "../../src/core/protocol.ts";
import { natural } from "../../src/core/shape.ts";
import { type Views, views } from "../../src/protocols/membership/views/agreement.ts";

/** A layer that always reports that it holds no messages. The exploration is about the agreement on views. */
export type Nothing = {
  state: Record<never, never>;
  command: { type: "flush"; round: number };
  event: { type: "flushed"; round: number; received: number[] };
};

export const nothing: Protocol<Nothing> = {
  name: "nothing",
  init: () => ({}),
  command: { flush: (_state, { round }, ctx) => ctx.emit({ type: "flushed", round, received: [] }) },
  shapes: { command: { flush: { round: natural } } },
  source: "this test",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: "nothing" }),
};

export type Group = Assembly<{ nothing: Nothing; views: Views }>;

export const plain = views({ remindMs: 0 });

export function group(agreement: Protocol<Views>): Protocol<Group> {
  const parts = { nothing, views: agreement };
  return assemble<{ nothing: Nothing; views: Views }>(
    "views",
    parts,
    {
      views: { flush: ({ round }, give) => give("nothing", { type: "flush", round }) },
      nothing: { flushed: ({ round, received }, give) => give("views", { type: "flushed", round, received }) },
    },
    { face: "views" },
  );
}

export const suspect = (node: NodeId): CommandOf<Group> => ({ type: "views", body: { type: "suspect", node } });

export const safety: { properties: Property<Group>[] } = {
  properties: group(plain).properties.filter(({ when }) => when === "always"),
};

export function told(move: Move<Group>): string {
  const what = move.kind === "receive" ? `receives ${move.message.body.type} from ${move.from}` : move.kind;
  return `${move.node} ${what}${move.crashesWithinStep === true ? ", and crashes before its second send" : ""}`;
}

/** Replays the moves one after another. */
export function follow(options: ExploreOptions<Group>, moves: readonly string[]): Group["state"][] {
  const model = new Model<Group>(options);
  const at = model.initial();
  for (const wanted of moves) {
    let isTaken = false;
    model.expandPlainly(at, (move, outcome) => {
      if (told(move()) !== wanted || (move().crashesWithinStep === true && outcome?.sends.length !== 1)) return false;
      at.set(model.next);
      isTaken = true;
      return true;
    });
    expect(isTaken, wanted).toBe(true);
  }
  return options.nodes.map((_, i) => model.steps.locals.valueOf(at[i] as number).state as Group["state"]);
}
