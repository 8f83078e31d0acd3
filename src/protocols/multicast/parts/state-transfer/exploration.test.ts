import { describe, expect, it } from "vitest";
import { reaching } from "../../../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../../../check/explore.ts";
import type { NodeId, Protocol, Vocabulary } from "../../../../core/protocol.ts";
import { type Shape, text } from "../../../../core/shape.ts";
import { causal } from "../../causal.ts";
import { stateIn } from "../../ip-multicast/sessions.ts";
import { isis } from "../../isis.ts";
import { type Replica, replica, withReplica } from "./replica.ts";
import { isisWithState, stateTransfer } from "./state-transfer.ts";
import type { Entry } from "./vocabulary.ts";

type Does = "read" | "stop" | "send";

const totally = (payload: Shape<Entry<string>>) => isis({}, payload) as unknown as Protocol<Vocabulary>;
const causally = (payload: Shape<Entry<string>>) => causal({}, payload) as unknown as Protocol<Vocabulary>;

/** Every run of nodes that do these things, each in that order and whenever it likes, over links. */
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

describe("state transfer: every run of a group that stays", () => {
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
  const title = "%j: one state, nothing twice, and in the end everybody who wants it has it";
  it.each(some)(title, (...run) => holds(...run));
  it.each(others)(title, { tags: ["long"] }, (...run) => holds(...run));
  it.each([largest])(title, { tags: ["larger"] }, (...run) => holds(...run));

  function holds(...[does, states]: Run): void {
    const found = reaching(exploring(does), "founded", "state");
    expect(found).toMatchObject({ verdict: "holds", states });
  }

  it("who founds is alone: its own messages are in its state, as in that of any reader", () => {
    expect(reaching(exploring([["read", "send"], []]), "founded")).toMatchObject({ verdict: "holds" });
  });
});

/** As if all had been in view 1 for long. */
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

describe("state transfer: every run of a group of three in which one crashes, which is made known", () => {
  const title = "that founds: the others continue without a state, and nothing is violated";
  it(`${title}: the first 20,000 states`, { tags: ["long"] }, () => {
    expect(founding({ maxStates: 20_000 })).toMatchObject({ property: null, states: 20_000 });
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

/** Says its state when it has applied what comes after the place that it is asked for. */
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

describe("state transfer: what it assumes", () => {
  it("where the order is not total, two have different states", () => {
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

  it("a user that says its state only when it has applied one more gives what the other applies again", () => {
    const found = exploring([["read", "send"], ["read"]], {}, { made: late });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: nothing twice" } });
  });

  it("a user that does not say its state leaves who comes without", () => {
    const silent = (): Protocol<Replica> => ({
      ...replica("inside"),
      command: { ...replica("inside").command, wanted() {} },
    });
    const found = exploring([["read"], ["read"]], {}, { made: silent });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });

  it("without views, who comes waits for ever for a source that has crashed", () => {
    const found = exploring([["read"], ["read"]], { crashes: 1 });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });

  it("a word that is lost is waited for for ever", () => {
    const found = exploring([["read"], []], { losses: 1 });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "replica: state reached" } });
  });
});
