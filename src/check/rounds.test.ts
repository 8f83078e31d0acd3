import { describe, expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { explore } from "./explore.ts";
import { exploreDepthFirst } from "./search/dfs.ts";

/** Nodes that send the number of the round to each other at the end of each of three rounds. */
type Drummers = {
  state: { round: number; heard: number[] };
  message: { type: "beat"; round: number };
  timer: "round";
};

const ROUNDS = 3;

const drummers: Protocol<Drummers> = {
  name: "drummers",
  init: () => ({ round: 1, heard: [] }),
  start: (_state, ctx) => ctx.setTimer("round", 100),
  receive: { beat: (state, _from, { round }) => void state.heard.push(round) },
  timeout: {
    round(state, ctx) {
      ctx.broadcast({ type: "beat", round: state.round });
      state.round += 1;
      if (state.round <= ROUNDS) ctx.setTimer("round", 100);
    },
  },
  shapes: { message: { beat: { round: { kind: "natural" } } } },
  source: "none",
  assumes: ["synchronous rounds"],
  properties: [
    {
      name: "in step",
      claim: "what is heard belongs to the round that has just ended",
      when: "always",
      // While a round ends at one node after another, nodes that have not ended it are one round behind.
      holds: ({ alive, state }) =>
        alive.every((node) =>
          state(node).heard.every((round, at) => round === Math.floor(at / (alive.length - 1)) + 1),
        ),
    },
    {
      name: "all heard",
      claim: "eventually every node has received from every node in each round",
      when: "quiescent",
      pendingTimers: ["round"],
      holds: ({ alive, nodes, state }) =>
        alive.length < nodes.length || alive.every((node) => state(node).heard.length === ROUNDS * (nodes.length - 1)),
    },
  ],
  costs: [],
  view: ({ round }) => ({ role: `round ${round}` }),
};

const model = { protocol: drummers, nodes: [0, 1, 2], network: "fifo", begin: "together" } as const;
const explored = (timers: "rounds" | "quiet" | "free", crashes = 0, search: object = {}) =>
  explore({ ...model, timers, crashes, ...search });

describe("timers in rounds", () => {
  it("fire at all nodes before any of their messages arrives", () => {
    expect(explored("rounds")).toMatchObject({ verdict: "holds" });
    expect(explored("quiet")).toMatchObject({ verdict: "violated", property: { name: "in step" } });
    expect(explored("free")).toMatchObject({ verdict: "violated", property: { name: "in step" } });
  });

  it("skip nodes that have crashed, between rounds and while one ends", () => {
    const { properties } = drummers;
    const heard = properties.filter(({ name }) => name === "all heard");
    const withCrash = explored("rounds", 1, { properties: heard });
    expect(withCrash).toMatchObject({ verdict: "holds" });
    expect(withCrash.states).toBeGreaterThan(explored("rounds").states);
  });

  it("give the same number of states in every search, with any packing", () => {
    // Depth-first search stores the components of states unpacked.
    const { states, transitions } = exploreDepthFirst({ ...model, timers: "rounds" });
    expect(explored("rounds")).toMatchObject({ states, transitions });
  });
});
