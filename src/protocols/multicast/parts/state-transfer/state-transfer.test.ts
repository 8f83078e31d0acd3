import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../../test/protocols/reached.ts";
import {
  anotherReadsLater,
  type Misfortune,
  misfortune,
  range,
  sourceCrashes,
  stacksWithState,
  stateStage,
  suffer,
} from "../../../../../test/protocols/state-stage.ts";
import { type ExploreOptions, explore } from "../../../../check/explore.ts";
import type { CommandOf, Context, EventOf, NodeId, Protocol, Vocabulary } from "../../../../core/protocol.ts";
import { type Shape, text } from "../../../../core/shape.ts";
import { dispatch } from "../../../../core/step.ts";
import type { AnyMaker } from "../../../system.ts";
import { causal } from "../../causal.ts";
import { stateIn } from "../../ip-multicast/sessions.ts";
import { isis } from "../../isis.ts";
import { type Replica, replica, withReplica } from "./replica.ts";
import { isisWithState, stateTransfer } from "./state-transfer.ts";
import { transfer } from "./transfer.ts";
import { beforeWordsOf, type Entry, type Standing, type Transfer } from "./vocabulary.ts";

describe("state transfer, under any faults", () => {
  const orders = Object.entries(stacksWithState);
  const title = "%s: one state at each position, no message twice or missing, and eventually all have it";
  it.each(orders)(title, (_name, order) => keepsOneState(order, misfortune(3, 15), 1));
  it.each(orders)(`${title}: longer`, { tags: ["larger"] }, (_name, order) =>
    keepsOneState(order, misfortune(5, 40), 40),
  );

  function keepsOneState(order: AnyMaker, misfortunes: fc.Arbitrary<Misfortune>, numRuns: number): void {
    fc.assert(
      fc.property(misfortunes, (given) => {
        const { sim, replica } = suffer(order, given);
        expect(sim.violations).toEqual([]);
        // If links lose messages that the order needs, the order holds messages back forever and violates agreement
        // itself.
        const owed = sim.verdict().map(({ property }) => property);
        if (owed.includes("agreement")) return;
        expect(owed).toEqual([]);
        const all = range(given.nodes).map(replica);
        const [first] = all;
        for (const each of all) expect(each).toMatchObject({ holds: true, line: first?.line });
        for (const node of range(given.nodes))
          expect(first?.line.filter((each) => each.startsWith(`${node}.`))).not.toEqual([]);
      }),
      { numRuns },
    );
  }
});

/** Creates three nodes in view 1. No node reads yet. */
function group() {
  const stage = stateStage(stacksWithState.isis, 3, { delayMs: 10 });
  for (const node of range(3)) stage.sim.start(node);
  stage.sim.run(1_000);
  return stage;
}

describe("state transfer: a new member", () => {
  it("gets the state and then the messages, at one position in the order", () => {
    const { sim, use, send, replica } = group();
    use(0, "read");
    sim.run(1_100);
    for (let n = 0; n < 5; n++) send(n % 2);
    use(2, "read");
    for (let n = 0; n < 5; n++) send(n % 2);
    sim.run(1_500);
    expect(replica(0).line).toHaveLength(11);
    expect(replica(2)).toMatchObject({ holds: true, founded: 0, line: replica(0).line });
    expect(sim.verdict()).toEqual([]);
  });

  it("costs nothing while no member wants a state; one that joins: a multicast of each member, a request and the parts", () => {
    const { sim, use, words } = group();
    expect(range(3).map(words)).toEqual([0, 0, 0]);
    use(0, "read");
    sim.run(1_100);
    use(2, "read");
    sim.run(1_200);
    // The node requests the state, all nodes report theirs once, and the state is transferred.
    expect(range(3).map(words)).toEqual([1, 1, 3]);
  });

  it("if the source crashes, another one provides it", () => {
    const { sim, use, send, replica } = group();
    for (const node of [0, 1]) use(node, "read");
    sim.run(1_200);
    for (let n = 0; n < 3; n++) send(1);
    sim.run(1_300);
    sim.cut(0, 2);
    use(2, "read");
    sim.run(1_335);
    expect(replica(2).holds).toBe(false);
    sim.crash(0);
    sim.run(4_000);
    expect(replica(2)).toMatchObject({ holds: true, line: replica(1).line });
    expect(replica(2).line).toHaveLength(4);
    expect(sim.violations).toEqual([]);
  });

  it("if the last holder of the state crashes, the state is lost, and one of the waiting members founds another", () => {
    const { sim, use, send, replica } = group();
    use(0, "read");
    sim.run(1_200);
    send(0);
    sim.run(1_300);
    sim.crash(0);
    for (const node of [1, 2]) use(node, "read");
    sim.run(5_000);
    send(2);
    sim.run(5_500);
    expect(replica(1)).toMatchObject({ founded: 1, holds: true });
    expect(replica(1).line).toHaveLength(2);
    expect(replica(2)).toMatchObject({ founded: 0, line: replica(1).line });
    expect(sim.violations).toEqual([]);
  });

  it("founds a state with the messages that it received while it waited, if the source crashes", () => {
    const { sim, replica } = sourceCrashes(stacksWithState.isis, () => {});
    expect(replica(2).line).toEqual([expect.stringMatching(/^by 2/), "2.1/2"]);
    expect(sim.violations).toEqual([]);
  });

  it("founds a state if it has waited longest: it has received every message that the others received", () => {
    const { sim, replica } = sourceCrashes(stacksWithState.isis, anotherReadsLater);
    expect(replica(2).line).toEqual([expect.stringMatching(/^by 2/), "2.1/2"]);
    expect(replica(1).line).toEqual(replica(2).line);
    expect([...sim.violations, ...sim.verdict()]).toEqual([]);
  });

  it("a member that was left out and returns gets the survivors' state in place of its own", () => {
    const { sim, use, send, replica } = group();
    for (const node of range(3)) use(node, "read");
    sim.run(1_200);
    sim.partition([[0], [1, 2]]);
    sim.run(3_000);
    send(1);
    sim.run(3_500);
    expect(replica(0).line).toHaveLength(1);
    sim.heal();
    sim.run(8_000);
    expect(replica(0)).toMatchObject({ holds: true, line: replica(1).line });
    expect(replica(0).line).toHaveLength(2);
    expect(sim.verdict()).toEqual([]);
  });

  it("a minority founds no state, and waits", () => {
    const stage = stateStage(stacksWithState.isis, 3, { delayMs: 10 });
    stage.sim.start(0);
    stage.use(0, "read");
    stage.sim.run(5_000);
    expect(stage.replica(0)).toMatchObject({ holds: false, founded: 0 });
    stage.sim.start(1);
    stage.sim.run(10_000);
    expect(stage.replica(0)).toMatchObject({ holds: true, founded: 1 });
  });
});

/** Creates node 4 alone. The test delivers the entries of the order. */
function member() {
  const protocol = transfer<string>("outside");
  const state = protocol.init(4, [1]);
  const events: EventOf<Transfer<string>>[] = [];
  const ctx = {
    self: 4,
    peers: [1],
    send: () => {},
    setTimer: () => {},
    cancelTimer: () => {},
    emit: (event: EventOf<Transfer<string>>) => void events.push(event),
  } as never as Context<Transfer<string>>;
  const tell = (command: CommandOf<Transfer<string>>) => {
    events.length = 0;
    dispatch(protocol, state, { kind: "command", command }, ctx);
    return [...events];
  };
  return {
    install: (view: number, ...members: NodeId[]) => tell({ type: "install", view, members }),
    seek: () => tell({ type: "seek" }),
    hear: (from: NodeId, number: number, is: Standing) =>
      tell({
        type: "deliver",
        from,
        payload: { type: "standing", number, is, place: 0, waitingSince: { view: 0, place: 0 } },
        id: "",
      }),
    standing: () => state.standing,
  };
}
const word = (view: number, place: number): number => beforeWordsOf(view) + place;
const says = (number: number, is: Standing) => ({
  type: "say",
  payload: { type: "standing", number, is, place: 0, waitingSince: expect.anything() },
});

describe("reports of a member's standing", () => {
  it("do not count if they are delivered in a later view: a member that has founded since is asked", () => {
    const { install, seek, hear, standing } = member();
    seek();
    expect(install(7, 1, 4)).toContainEqual(says(word(7, 1), "seeking"));
    expect(install(8, 4)).toContainEqual(says(word(8, 1), "seeking"));
    hear(4, word(7, 1), "seeking");
    expect(standing()).toBe("seeking");
    hear(4, word(8, 1), "seeking");
    expect(standing()).toBe("holding");
    install(9, 1, 4);
    hear(4, word(8, 2), "seeking"); // This report was in flight when the view changed.
    expect(hear(1, word(9, 1), "seeking")).toEqual([says(word(9, 1), "holding")]);
    expect(standing()).toBe("holding");
    expect(hear(4, word(9, 1), "holding")).toContainEqual(expect.objectContaining({ type: "wanted", view: 9 }));
  });
});

type Does = "read" | "stop" | "send";

const totally = (payload: Shape<Entry<string>>) => isis({}, payload) as unknown as Protocol<Vocabulary>;
const causally = (payload: Shape<Entry<string>>) => causal({}, payload) as unknown as Protocol<Vocabulary>;

/** Explores every run. Each node performs its actions in this order, at any time, over links. */
function exploring(
  does: readonly (readonly Does[])[],
  more: Partial<ExploreOptions<Vocabulary>> = {},
  { order = totally, made = () => replica("inside") }: { order?: typeof totally; made?: () => Protocol<Replica> } = {},
) {
  const multicast = () => stateTransfer(order, text(100), "inside");
  const protocol = withReplica({ parts: { multicast }, wires: {}, algorithm: "multicast" }, made)();
  return explore<Vocabulary>({
    protocol: protocol,
    nodes: does.map((_, node) => node),
    network: "fifo",
    timers: "quiet",
    begin: "idle",
    asks: (node: NodeId) => (does[node] ?? []).map((type) => ({ type: "replica", body: { type } })) as never,
    ...more,
  });
}

describe("state transfer: every run of a group with fixed members", () => {
  type Run = readonly [does: readonly (readonly Does[])[], states: number];
  const some: readonly Run[] = [
    [[["read"], ["read"]], 105],
    [[["read", "send"], ["read"]], 616],
  ];
  const others: readonly Run[] = [
    [
      [
        ["read", "send"],
        ["read", "send"],
      ],
      3_978,
    ],
    [
      [
        ["read", "stop"],
        ["read", "send"],
      ],
      3_022,
    ],
    [[["read"], ["read"], []], 21_073],
    [
      [
        ["read", "stop", "read"],
        ["read", "send"],
      ],
      18_924,
    ],
    [
      [
        ["read", "send", "stop"],
        ["read", "send"],
      ],
      15_705,
    ],
  ];
  const largest: Run = [[["read"], ["read"], ["read"]], 2_144_219];
  const title = "%j: one state, no message twice, and eventually all nodes that want it have it";
  it.each(some)(title, (...run) => holds(...run));
  it.each(others)(title, { tags: ["long"] }, (...run) => holds(...run));
  it.each([largest])(title, { tags: ["larger"] }, (...run) => holds(...run));

  function holds(...[does, states]: Run): void {
    const found = reaching(exploring(does), "founded", "state");
    expect(found).toMatchObject({ verdict: "holds", states });
  }

  it("there is a single founder: its own messages are in its state, as in any reader's", () => {
    expect(reaching(exploring([["read", "send"], []]), "founded")).toMatchObject({ verdict: "holds" });
  });
});

/** Returns the protocol with all nodes in view 1 at the start. */
function settled(nodes: readonly NodeId[]): Protocol<Vocabulary> {
  const plain = isisWithState({ views: { remindMs: 0 } });
  const members = nodes.map((node) => ({ node, incarnation: 1 }));
  return {
    ...plain,
    init(self, peers) {
      const { transfer, order } = plain.init(self, peers);
      const { upper, lower } = order;
      return {
        transfer: { ...transfer, view: 1, members: [...nodes], membership: "member" },
        order: {
          upper: { ...upper, view: 1, members: [...nodes], membership: "member" },
          lower: {
            multicast: stateIn(self, 1, [...nodes], []),
            views: { ...lower.views, incarnation: 1, view: { number: 1, members, cut: [] } },
          },
        },
      };
    },
  };
}

describe("state transfer: every run of a group of three with one crash, which is reported", () => {
  const title = "that founds: the others continue without a state, and nothing is violated";
  it(`${title}: the first 10,000 states`, { tags: ["long"] }, () => {
    expect(founding({ maxStates: 10_000 })).toMatchObject({ property: null, states: 10_000 });
  });
  it(title, { tags: ["larger"] }, () => {
    expect(founding()).toMatchObject({ verdict: "holds", states: 156_842 });
  });

  function founding(bounds: Partial<ExploreOptions<Vocabulary>> = {}) {
    const does: readonly (readonly Does[])[] = [["read"], [], []];
    const inView1 = (): Protocol<Replica> => ({
      ...replica("inside"),
      init: (self, peers) => ({ ...replica("inside").init(self, peers), view: 1 }),
    });
    const system = { parts: { multicast: () => settled([0, 1, 2]) }, wires: {}, algorithm: "multicast" };
    const protocol = withReplica(system, inView1)() as unknown as Protocol<Vocabulary>;
    return reaching(
      explore<Vocabulary>({
        protocol,
        nodes: [0, 1, 2],
        network: "fifo",
        timers: "quiet",
        begin: "idle",
        crashes: 1,
        crashNotification: (node) => ({ type: "multicast", body: { type: "suspect", node } }) as never,
        asks: (node: NodeId) => (does[node] ?? []).map((type) => ({ type: "replica", body: { type } })) as never,
        ...bounds,
      }),
      "founded",
    );
  }
});

/** A faulty replica that returns its state only after it has applied deliveries beyond the requested position. */
function late(): Protocol<Replica> {
  const { command, ...rest } = replica("inside");
  type Asked = Replica["state"] & { at?: { view: number; place: number } | null };
  return {
    ...rest,
    command: {
      ...command,
      wanted(state: Asked, { view, place }) {
        state.at = { view, place };
      },
      delivered(state: Asked, said, ctx) {
        command.delivered(state, said, ctx);
        const { at } = state;
        state.at = null;
        if (at) command.wanted(state, { type: "wanted", ...at }, ctx);
      },
    },
  };
}

describe("state transfer: its assumptions", () => {
  it("if the order is not total, two nodes have different states", () => {
    const found = exploring(
      [
        ["read", "send"],
        ["read", "send"],
      ],
      {},
      { order: causally },
    );
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: one state" } });
  });

  it("a user that returns its state one delivery late makes the other apply that delivery twice", () => {
    const found = exploring([["read", "send"], ["read"]], {}, { made: late });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: nothing twice" } });
  });

  it("a user that does not return its state leaves a new member without one", () => {
    const silent = (): Protocol<Replica> => ({
      ...replica("inside"),
      command: { ...replica("inside").command, wanted() {} },
    });
    const found = exploring([["read"], ["read"]], {}, { made: silent });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });

  it("without views, a new member waits forever for a crashed source", () => {
    const found = exploring([["read"], ["read"]], { crashes: 1 });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });

  it("a lost report is awaited forever", () => {
    const found = exploring([["read"], []], { losses: 1 });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });
});
