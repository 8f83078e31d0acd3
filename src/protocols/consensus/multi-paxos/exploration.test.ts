import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import { walk } from "../../../check/search/walks.ts";
import type { EventOf, Property } from "../../../core/protocol.ts";
import { type MultiPaxos, multiPaxos } from "./multi-paxos.ts";

const operations = ["by 0", "by 1"];
const propose = (client: number): MultiPaxos["command"] => ({
  type: "propose",
  command: { client, sequence: 1, operation: `by ${client}` },
});

type Places = Readonly<Record<number, string>>;

/** Of all nodes, those that have crashed among them: what each has decided where. */
const agreement: Property<MultiPaxos> = {
  name: "agreement",
  claim: "no two nodes decide differently in a slot, and nothing that was not proposed",
  when: "always",
  history: {
    empty: {},
    after(before: Places, event: EventOf<MultiPaxos>): Places {
      if (event.type !== "decided") return before;
      const { index, command } = event;
      const known = before[index];
      return { ...before, [index]: known === undefined || known === command.operation ? command.operation : "two" };
    },
  },
  holds({ nodes, history }) {
    const places = nodes.map((node) => history<Places>(node));
    return places.every((one) =>
      Object.entries(one).every(
        ([index, operation]) =>
          operations.includes(operation) && places.every((other) => (other[Number(index)] ?? operation) === operation),
      ),
    );
  },
};

/** Nodes 0 and 1 propose a command each, and stand for election to have it decided. */
const model = (more: Partial<ExploreOptions<MultiPaxos>>): ExploreOptions<MultiPaxos> => ({
  protocol: multiPaxos({ window: 2, announces: false }),
  properties: [agreement],
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "never",
  begin: "idle",
  asks: (node) => (node === 2 ? [] : [propose(node)]),
  ...more,
});

describe("multi-paxos: every run of two proposers", () => {
  it("keeps agreement and validity", () => {
    expect(reaching(explore(model({})), "decided")).toMatchObject({ verdict: "holds", states: 22_168 });
  });

  it.each(["random", "pct", "swarm"] as const)(
    "%s runs with a crash, a recovery, a loss and time-outs keep both",
    (strategy) => {
      const faults = { crashes: 1, recoveries: 1, losses: 1, timers: "free", maxTimeouts: 4 } as const;
      const found = walk({ ...model(faults), strategy, seed: 1, runs: 300 });
      expect([found.verdict, found.property]).toEqual([expect.not.stringMatching("violated"), null]);
    },
  );

  /** Breadth-first search does not end here: 1,362,642 states in half a minute. */
  it("a crash, a recovery and a loss: no violation in the first 100,000 states", { tags: ["long"] }, () => {
    const found = explore(model({ crashes: 1, recoveries: 1, losses: 1, maxStates: 100_000 }));
    expect([found.verdict, found.property]).toEqual(["unknown", null]);
  });
});
