import { describe, expect, it } from "vitest";
import { type ExploreOptions, explore } from "../../check/explore.ts";
import type { Property, Protocol } from "../../core/protocol.ts";
import { desk } from "./parts/desk.ts";
import type { Desk } from "./parts/desk-claims.ts";

/**
 * Desks without users and without an election: 0 serves in epoch 1, and when it crashes all are told that 1 does, in epoch
 * 2. Each node asks once a run; it may leave whenever it likes, be it inside or waiting.
 */
function exploreDesks(names: readonly string[], more: Partial<ExploreOptions<Desk>> = {}) {
  const plain = desk();
  const protocol: Protocol<Desk> = {
    ...plain,
    init(self, peers) {
      const service = { grants: 0, awaited: [], isRecalling: false, holder: null, queue: [] };
      return { ...plain.init(self, peers), epoch: 1, server: 0, service: self === 0 ? service : null };
    },
    start: (state) => void Object.assign(state, { epoch: 0, server: null, service: null }), // Only restarts come here.
  };
  return explore<Desk>({
    protocol,
    nodes: [0, 1, 2],
    network: "fifo",
    timers: "free",
    begin: "idle",
    properties: [...protocol.properties, tokensGrow].filter(({ name }) => names.includes(name)),
    notices: (crashed) => (crashed === 0 ? elected(1, 2) : elected(0, 1)),
    commands({ epoch, section, ticket }, node) {
      if (epoch === 0) return [node === 0 ? elected(1, 2) : elected(0, 1)];
      if (section !== "released") return [{ type: "exit" }];
      return ticket.request === 0 ? [{ type: "enter" }] : [];
    },
    ...more,
  });
}

const elected = (leader: number, epoch: number): Desk["command"] => ({ type: "elected", leader, epoch });

/** Of the last entry of each node. */
const tokensGrow: Property<Desk> = {
  name: "tokens grow",
  claim: "whoever is inside has the highest token",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every(
      (inside) =>
        state(inside).section !== "held" ||
        alive.every((node) => node === inside || state(node).token < state(inside).token),
    ),
};

describe("elected server: every run", () => {
  type More = Partial<ExploreOptions<Desk>>;
  const safe = ["ME1 safety", "tokens are unique", "tokens grow"];

  it.each<[string, More, number]>([
    ["in any order", { network: "bag" }, 1_505],
    ["and one crashes and comes back", { crashes: 1, recoveries: 1 }, 144_466],
    [
      "and a message is lost, and one arrives twice, in any order",
      { losses: 1, duplications: 1, network: "bag" },
      21_863,
    ],
  ])(
    "of 3 nodes that enter, leave or take their requests back, %s: ME1, tokens are unique and grow",
    (_what, more, states) => {
      const found = exploreDesks(safe, { timers: "never", ...more });
      expect([found.verdict, found.states]).toEqual(["holds", states]);
    },
  );

  it.each<[string, More, number]>([
    ["two time-outs", { maxTimeouts: 2 }, 59_873],
    ["a time-out and a crash", { maxTimeouts: 1, crashes: 1 }, 77_118],
    ["a time-out and a loss", { maxTimeouts: 1, losses: 1 }, 20_674],
  ])("of 3 nodes, with up to %s at any time: tokens are unique", (_what, more, states) => {
    const found = exploreDesks(["tokens are unique"], more);
    expect([found.verdict, found.path.length, found.states]).toEqual(["unknown", 0, states]); // More time-outs are cut off.
  });

  it("timers that run out whenever they like: a lease outlasts the server's patience, and two are inside", () => {
    const { verdict, property } = exploreDesks(["ME1 safety"], { maxTimeouts: 1 });
    expect([verdict, property?.name]).toEqual(["violated", "ME1 safety"]);
  });
});
