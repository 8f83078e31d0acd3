import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { Move } from "../../../check/model.ts";
import { type Assembly, assemble } from "../../../core/assemble.ts";
import type { CommandOf, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { type Views, type ViewsOptions, views } from "./views.ts";

/** Says that it holds nothing whenever it is asked: what is explored is how views are agreed upon. */
type Nothing = {
  state: Record<never, never>;
  command: { type: "flush"; round: number };
  event: { type: "flushed"; round: number; received: number[] };
};

const nothing: Protocol<Nothing> = {
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

type Group = Assembly<{ nothing: Nothing; views: Views }>;

function group(options?: Partial<ViewsOptions>): Protocol<Group> {
  const parts = { nothing, views: views({ remindMs: 0, ...options }) };
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

const suspect = (node: NodeId): CommandOf<Group> => ({ type: "views", body: { type: "suspect", node } });

/** As if all had been in view 1 for long. */
function settled(nodes: readonly NodeId[]): Protocol<Group> {
  const plain = group();
  const members = nodes.map((node) => ({ node, incarnation: 1 }));
  return {
    ...plain,
    init(self, peers) {
      const state = plain.init(self, peers);
      return { ...state, views: { ...state.views, incarnation: 1, view: { number: 1, members, cut: [] } } };
    },
  };
}

const exploring = (nodes: readonly NodeId[], more: Partial<ExploreOptions<Group>>) =>
  explore<Group>({
    protocol: settled(nodes),
    nodes,
    network: "fifo",
    timers: "free",
    begin: "idle",
    notices: suspect,
    ...more,
  });

/** 0 and 2 take each other for crashed. */
const disputed = (node: NodeId): CommandOf<Group>[] => (node === 1 ? [] : [suspect(2 - node)]);

describe("views: every run", () => {
  it("with one crash, and timers above all delays: one sequence of views, and nobody stays silent", () => {
    expect(exploring([0, 1, 2], { crashes: 1, timers: "synchronous" })).toMatchObject({ verdict: "holds", states: 49 });
  });

  it.each([
    ["one crash, four time-outs", { crashes: 1, maxTimeouts: 4 }, 4_312],
    ["one crash and recovery, one time-out", { crashes: 1, recoveries: 1, maxTimeouts: 1 }, 9_505],
    ["two that take each other for crashed, two time-outs", { asks: disputed, maxTimeouts: 2 }, 23_710],
  ] as const)("with timers that may run out at any time, %s: no violation within", (_what, more, states) => {
    const found = exploring([0, 1, 2], { ...more, ...safety });
    expect(found).toMatchObject({ verdict: "unknown", property: null, states });
  });

  it("without its journal a node accepts another view by the same number", () => {
    const found = exploring([0, 1, 2], {
      ...safety,
      asks: disputed,
      notices: () => null,
      crashes: 1,
      recoveries: 1,
      journal: "lost",
      maxTimeouts: 2,
    });
    expect(found.property?.name).toBe("agreement on views");
    expect(found.path.map(({ move }) => told(move))).toEqual([
      "0 command",
      "0 timeout",
      "1 receives prepare of 0",
      "0 receives promise of 1",
      "1 receives propose of 0",
      "0 receives accept of 1",
      "1 crash",
      "1 start",
      "2 command",
      "2 receives wish of 1",
      "2 timeout",
      "1 receives prepare of 2",
      "2 receives promise of 1",
      "1 receives propose of 2",
      "2 receives accept of 1",
    ]);
    const members = found.path.at(-1)?.states.map((state) => state?.views.view.members.map(({ node }) => node));
    expect(members).toEqual([
      [0, 1],
      [0, 1, 2],
      [1, 2],
    ]);
  });
});

const safety: Partial<ExploreOptions<Group>> = {
  properties: group().properties.filter(({ when }) => when === "always"),
};

function told(move: Move<Group>): string {
  const what = move.kind === "receive" ? `receives ${move.message.body.type} of ${move.from}` : move.kind;
  return `${move.node} ${what}`;
}
