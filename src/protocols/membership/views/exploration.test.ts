import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { follow, type Group, group, plain, safety, suspect, told } from "../../../../test/protocols/views-explored.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import type { CommandOf, Context, NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { changedContext } from "../../contexts.ts";
import type { Views } from "./agreement.ts";
import { FIRST_ROUND } from "./vocabulary.ts";

/** Returns the protocol with all nodes in view 1 at the start. */
function settled(nodes: readonly NodeId[], agreement = plain): Protocol<Group> {
  const whole = group(agreement);
  const members = nodes.map((node) => ({ node, incarnation: 1 }));
  return {
    ...whole,
    init(self, peers) {
      const state = whole.init(self, peers);
      return { ...state, views: { ...state.views, incarnation: 1, view: { number: 1, members, cut: [] } } };
    },
  };
}

const exploring = (nodes: readonly NodeId[], more: Partial<ExploreOptions<Group>>) =>
  reaching(
    explore<Group>({
      protocol: settled(nodes),
      nodes,
      network: "fifo",
      timers: "free",
      begin: "idle",
      crashNotification: suspect,
      ...more,
    }),
    "installed",
  );

/** Returns the commands that make nodes 0 and 2 suspect each other. */
const disputed = (node: NodeId): CommandOf<Group>[] => (node === 1 ? [] : [suspect(2 - node)]);

const allStay: Property<Group> = {
  name: "all stay",
  claim: "every alive node is in every view",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { view } = state(node).views;
      return alive.every((other) => view.members.some((member) => member.node === other));
    }),
};

describe("views: every run", () => {
  it("with one crash, and timers above all delays: one sequence of views, and no node stays blocked", () => {
    expect(exploring([0, 1, 2], { crashes: 1, timers: "quiet" })).toMatchObject({ verdict: "holds", states: 49 });
  });

  it.each([
    ["one crash, five time-outs", { crashes: 1, maxTimeouts: 5 }, 19_984],
    ["one crash and recovery, one time-out", { crashes: 1, recoveries: 1, maxTimeouts: 1 }, 9_529],
    ["two that suspect each other, two time-outs", { asks: disputed, maxTimeouts: 2 }, 24_664],
  ] as const)("with timers that may expire at any time, %s: no violation within the bounds", (_what, more, states) => {
    const found = exploring([0, 1, 2], { ...more, ...safety });
    expect(found).toMatchObject({ verdict: "unknown", property: null, states });
  });

  it("with timers that may expire at any time, one crash, six timeouts: the same", { tags: ["long"] }, () => {
    const found = exploring([0, 1, 2], { crashes: 1, maxTimeouts: 6, ...safety });
    expect(found).toMatchObject({ verdict: "unknown", property: null, states: 57_061 });
  });

  it("with one crash and one lost message, and timers above all delays: the same", () => {
    const found = exploring([0, 1, 2], { crashes: 1, losses: 1, timers: "quiet" });
    expect(found).toMatchObject({ verdict: "holds", states: 265 });
  });

  it("with five nodes and one crash, one lost message excludes no node; two may", () => {
    const losing = (losses: number) =>
      exploring([0, 1, 2, 3, 4], { crashes: 1, losses, timers: "quiet", properties: [allStay] });
    expect(losing(1)).toMatchObject({ verdict: "holds", states: 19_941 });
    expect(losing(2).property).toBe(allStay);
  });

  it("without its journal a node accepts another view with the same number", { tags: ["long"] }, () => {
    const found = exploring([0, 1, 2], {
      ...safety,
      asks: disputed,
      crashNotification: () => null,
      crashes: 1,
      recoveries: 1,
      journal: "lost",
      maxTimeouts: 2,
    });
    expect(found.property?.name).toBe("agreement on views");
    expect(found.path.map(({ move }) => told(move))).toEqual([
      "0 command",
      "0 timeout",
      "1 receives prepare from 0",
      "0 receives promise from 1",
      "1 receives propose from 0",
      "0 receives accept from 1",
      "1 crash",
      "1 start",
      "2 command",
      "2 receives wish from 1",
      "2 timeout",
      "1 receives prepare from 2",
      "2 receives promise from 1",
      "1 receives propose from 2",
      "2 receives accept from 1",
    ]);
    const members = found.path.at(-1)?.states.map((state) => state?.views.view.members.map(({ node }) => node));
    expect(members).toEqual([
      [0, 1],
      [0, 1, 2],
      [1, 2],
    ]);
  });
});

describe("views: promises survive a crash", () => {
  const unkept = (ctx: Context<Views>): Context<Views> => changedContext(ctx, { compact: () => {} });
  const { prepare } = plain.receive;
  const { change } = plain.timeout;
  /** A faulty protocol: promises to other nodes are not in the journal. */
  const forgetful: Protocol<Views> = {
    ...plain,
    receive: { ...plain.receive, prepare: (state, from, said, ctx) => prepare(state, from, said, unkept(ctx)) },
  };
  /** A faulty protocol: rounds that the node calls are not in the journal. */
  const heedless: Protocol<Views> = {
    ...plain,
    timeout: { ...plain.timeout, change: (state, ctx) => change(state, unkept(ctx)) },
  };

  /** Makes a node that suspects a peer call a round at once. */
  function hasty(agreement: Protocol<Views>): Protocol<Views> {
    const { command, timeout } = agreement;
    return {
      ...agreement,
      command: {
        ...command,
        suspect(state, said, ctx) {
          command.suspect(state, said, ctx);
          if (state.phase.is === "due") timeout.change(state, ctx);
        },
      },
    };
  }

  const calling = (agreement: Protocol<Views>) => ({
    ...safety,
    protocol: settled([0, 1, 2], hasty(agreement)),
    nodes: [0, 1, 2],
    network: "fifo" as const,
    timers: "never" as const,
    begin: "idle" as const,
    asks: disputed,
    crashes: 1,
    recoveries: 1,
  });

  it("two nodes call rounds, one crashes and recovers: no violation with up to six messages in flight", {
    tags: ["long"],
  }, () => {
    const found = explore<Group>({ ...calling(plain), maxInFlight: 6 });
    expect(found).toMatchObject({ verdict: "unknown", property: null, states: 252_619 });
  });

  it("a node that forgets its promises accepts an earlier round: two views with one number", () => {
    const found = explore<Group>(calling(forgetful));
    expect(found.property?.name).toBe("agreement on views");
    expect(found.path.map(({ move }) => told(move))).toEqual([
      "0 command",
      "1 receives prepare from 0",
      "2 command",
      "1 receives prepare from 2",
      "1 crash",
      "1 start",
      "0 receives promise from 1",
      "0 receives wish from 1",
      "1 receives propose from 0",
      "0 receives accept from 1",
      "2 receives promise from 1",
      "1 receives propose from 2",
      "2 receives wish from 1",
      "2 receives accept from 1",
    ]);
  });

  /** Found by exploring `heedless`: an acceptance of 0's proposal from before the crash counts for its new proposal. */
  const reused = [
    "0 command",
    "1 receives prepare from 0",
    "0 receives promise from 1, and crashes before its second send",
    "0 start",
    "0 command",
    "1 receives propose from 0",
    "2 receives prepare from 0",
    "0 receives promise from 2",
    "0 receives accept from 1",
    "2 command",
    "1 receives prepare from 2",
    "2 receives promise from 1",
    "1 receives propose from 2",
    "2 receives accept from 1",
  ];

  it.each([
    ["a node that remembers the rounds that it has called calls another", plain, [1, 1, 2], true],
    ["a node that forgets them calls one twice: two views with one number", heedless, [2, 1, 2], false],
  ] as const)("a crash in the middle of a proposal: %s", (_what, agreement, numbers, agrees) => {
    const asks = (node: NodeId): CommandOf<Group>[] => [[suspect(2), suspect(1)], [], [suspect(0)]][node] ?? [];
    const states = follow({ ...calling(agreement), asks, withinStep: true }, reused);
    expect(states.map(({ views: { view } }) => view.number)).toEqual(numbers);
    const world = { nodes: [0, 1, 2], alive: [0, 1, 2], state: (node: NodeId) => states[node] as Group["state"] };
    const promise = safety.properties.find(({ name }) => name === "agreement on views");
    expect(promise?.holds(world as never, 0)).toBe(agrees);
  });
});

const beginning = (more: Partial<ExploreOptions<Group>>): ExploreOptions<Group> => ({
  protocol: group(plain),
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "quiet",
  begin: "together",
  crashNotification: suspect,
  ...more,
});

describe("views: every run of a new group, whose first view needs no promises", () => {
  it.each([
    ["nothing happens", {}, 247],
    ["one crashes", { crashes: 1 }, 1_609],
  ] as const)("%s, timers above all delays: all remaining nodes are in one view", (_what, more, states) => {
    expect(reaching(explore(beginning(more)), "installed")).toMatchObject({ verdict: "holds", states });
  });

  it("one crashes within a step and recovers, and no timer expires: one sequence of views", () => {
    const within = { ...safety, crashes: 1, recoveries: 1, withinStep: true, timers: "never" } as const;
    const found = reaching(explore(beginning(within)), "installed");
    expect(found).toMatchObject({ verdict: "holds", states: 17_605 });
  });

  it("one timer expires at any time, so that two nodes propose a first view: no violation within the bounds", () => {
    const found = reaching(explore(beginning({ ...safety, timers: "free", maxTimeouts: 1 })), "installed");
    expect(found).toMatchObject({ verdict: "unknown", property: null, states: 24_823 });
  });
});

describe("views: the lowest node crashes after it has proposed the first view, and recovers", () => {
  /** A faulty protocol: a node mistakes its restart for its first start. */
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
    "0 receives wish from 1",
    "0 receives wish from 2, and crashes before its second send",
    "0 start",
    "1 command",
    "1 receives wish from 0",
    "1 receives propose from 0",
    "2 command",
    "0 receives wish from 1",
    "0 receives wish from 2",
    "0 receives accept from 1",
    "1 receives wish from 2",
    "1 receives wish from 2",
    "1 command",
    "1 timeout",
    "2 receives wish from 1",
    "2 receives wish from 1",
    "2 receives prepare from 1",
    "1 receives promise from 2",
    "2 receives propose from 1",
    "1 receives accept from 2",
  ];

  it.each([
    ["its journal says that it may have used the first round", plain, [0, 1, 0], true],
    ["or else it proposes another: two views with one number", careless, [1, 1, 0], false],
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
