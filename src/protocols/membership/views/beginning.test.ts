import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { follow, type Group, group, plain, safety, suspect } from "../../../../test/protocols/views-explored.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { CommandOf, NodeId } from "../../../core/protocol.ts";
import { FIRST_ROUND } from "./vocabulary.ts";

const beginning = (more: Partial<ExploreOptions<Group>>): ExploreOptions<Group> => ({
  protocol: group(plain),
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "quiet",
  begin: "together",
  crashNotification: suspect,
  ...more,
});

describe("views: every run of a group that begins, the first view of which needs no promises", () => {
  it.each([
    ["nothing happens", {}, 247],
    ["one crashes", { crashes: 1 }, 1_609],
  ] as const)("%s, timers above all delays: all that are left are in one view", (_what, more, states) => {
    expect(reaching(explore(beginning(more)), "installed")).toMatchObject({ verdict: "holds", states });
  });

  it("one crashes within a step and recovers, and no timer runs out: one sequence of views", () => {
    const within = { ...safety, crashes: 1, recoveries: 1, withinStep: true, timers: "never" } as const;
    const found = reaching(explore(beginning(within)), "installed");
    expect(found).toMatchObject({ verdict: "holds", states: 17_605 });
  });

  it("one timer runs out at any time, so that two nodes propose a first view: no violation within", () => {
    const found = reaching(explore(beginning({ ...safety, timers: "free", maxTimeouts: 1 })), "installed");
    expect(found).toMatchObject({ verdict: "unknown", property: null, states: 24_823 });
  });
});

describe("views: the lowest node crashes after it has proposed the first view, and comes back", () => {
  /** It takes its restart for its first start. */
  const careless: typeof plain = {
    ...plain,
    replay: {
      register(state, record) {
        plain.replay.register(state, record);
        if (state.accepted === null) state.promised = FIRST_ROUND;
      },
    },
  };
  const join: CommandOf<Group> = { type: "views", body: { type: "join" } };
  const asks = (node: NodeId): CommandOf<Group>[] => [[], [join, suspect(0)], [join]][node] ?? [];
  const moves = [
    "0 start",
    "1 start",
    "2 start",
    "0 receives wish of 1",
    "0 receives wish of 2, and crashes before its second send",
    "0 start",
    "1 command",
    "1 receives wish of 0",
    "1 receives propose of 0",
    "2 command",
    "0 receives wish of 1",
    "0 receives wish of 2",
    "0 receives accept of 1",
    "1 receives wish of 2",
    "1 receives wish of 2",
    "1 command",
    "1 timeout",
    "2 receives wish of 1",
    "2 receives wish of 1",
    "2 receives prepare of 1",
    "1 receives promise of 2",
    "2 receives propose of 1",
    "1 receives accept of 2",
  ];

  it.each([
    ["its journal says that it may have used the first round", plain, [0, 1, 0], true],
    ["or else it proposes another: two views by one number", careless, [1, 1, 0], false],
  ] as const)("%s", (_what, agreement, numbers, agrees) => {
    const options = beginning({
      protocol: group(agreement),
      timers: "free",
      crashes: 1,
      recoveries: 1,
      withinStep: true,
      asks,
    });
    const states = follow(options, moves);
    expect(states.map(({ views: { view } }) => view.number)).toEqual(numbers);
    const world = { nodes: [0, 1, 2], alive: [0, 1, 2], state: (node: NodeId) => states[node] as Group["state"] };
    const promise = safety.properties.find(({ name }) => name === "agreement on views");
    expect(promise?.holds(world as never, 0)).toBe(agrees);
  });
});
