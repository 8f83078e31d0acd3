import { describe, expect, it } from "vitest";
import type { NodeId, Property, Protocol } from "../core/protocol.ts";
import { type Stimulus, step } from "../core/step.ts";
import { explore } from "./explore.ts";
import type { ModelOptions } from "./model.ts";

/** Whoever likes bids; everybody backs the bid that reaches it first. Nobody looks at how big an id is. */
type Bidding = {
  state: { backs: NodeId | null; backers: NodeId[] };
  message: { type: "bid" } | { type: "backing" };
  command: { type: "bid" };
};
const bidding: Protocol<Bidding> = {
  name: "bidding",
  init: () => ({ backs: null, backers: [] }),
  receive: {
    bid(state, from, _message, ctx) {
      if (state.backs !== null) return;
      state.backs = from;
      ctx.send(from, { type: "backing" });
    },
    backing(state, from) {
      state.backers = [...state.backers, from].sort((a, b) => a - b);
    },
  },
  command: {
    bid(state, _command, ctx) {
      if (state.backs !== null) return;
      state.backs = ctx.self;
      ctx.broadcast({ type: "bid" });
    },
  },
  shapes: { message: { bid: {}, backing: {} }, command: { bid: {} } },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: ({ backs }) => ({ role: backs === null ? "free" : "bound" }),
};
const oneWinner: Property<Bidding> = {
  name: "one winner",
  claim: "at most one has two backers",
  when: "always",
  holds: ({ alive, state }) => alive.filter((node) => state(node).backers.length >= 2).length <= 1,
};
const fewFavourites: Property<Bidding> = {
  name: "few favourites",
  claim: "at most two are backed",
  when: "always",
  holds: ({ alive, state }) => new Set(alive.flatMap((node) => state(node).backs ?? [])).size <= 2,
};

const options: ModelOptions<Bidding> = {
  protocol: bidding,
  nodes: [0, 1, 2, 3],
  network: "fifo",
  timers: "free",
  begin: "idle",
  asks: () => [{ type: "bid" }],
};
const symmetry: ModelOptions<Bidding>["symmetry"] = (value, renamed) =>
  "backers" in value
    ? {
        ...value,
        backs: value.backs === null ? null : renamed(value.backs),
        backers: value.backers.map(renamed).sort((a, b) => a - b),
      }
    : value;

describe("symmetry", () => {
  it.each(["fifo", "inbox", "bag"] as const)(
    "the verdict is that of the full search, with fewer states: %s",
    (network) => {
      const properties = [oneWinner];
      const full = explore({ ...options, nodes: [0, 1, 2], network, properties });
      const reduced = explore({ ...options, nodes: [0, 1, 2], network, properties, symmetry });
      expect([full.verdict, reduced.verdict]).toEqual(["holds", "holds"]);
      expect(reduced.depth).toBe(full.depth);
      expect(full.states / reduced.states).toBeGreaterThan(4);
      expect(full.states / reduced.states).toBeLessThanOrEqual(6);
    },
  );

  it("pays up to N!", () => {
    const count = (more: object): number => explore({ ...options, properties: [], ...more }).states;
    expect([count({ maxDepth: 8 }), count({ maxDepth: 8, symmetry })]).toEqual([10_855, 514]);
  });

  it("a counterexample is a run that can happen, as short as that of the full search", () => {
    const full = explore({ ...options, properties: [fewFavourites] });
    const { verdict, path } = explore({ ...options, properties: [fewFavourites], symmetry });
    expect([verdict, path.length]).toEqual(["violated", full.path.length]);
    const states = options.nodes.map((self) => bidding.init(self, []));
    for (const { move, states: after } of path) {
      const { node: self } = move;
      const peers = options.nodes.filter((peer) => peer !== self);
      const stimulus = { ...move } as Stimulus<Bidding>;
      states[self] = step(bidding, { self, peers }, states[self] as Bidding["state"], stimulus).state;
      expect(states).toEqual(after);
    }
  });

  it("is refused with a promise to each node, since it takes one node for another", () => {
    const properties: Property<Bidding>[] = [
      {
        name: "bound",
        claim: "in the end",
        when: "leadsTo",
        given: () => true,
        holds: ({ state }, node) => state(node).backs !== null,
      },
    ];
    expect(() => explore({ ...options, properties, symmetry })).toThrow(
      'expected symmetry to come with properties of single states only, got "bound": leave it out',
    );
  });
});
