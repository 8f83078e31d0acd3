// @module-tag long
import { describe, expect, it } from "vitest";
import { told, use } from "../../../../test/protocols/multicast-stage.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { range } from "../../../../test/protocols/sizes.ts";
import { type ExploreOptions, explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import type { Property } from "../../../core/protocol.ts";
import { delivery, fifoOrder } from "../family/properties.ts";
import { type MulticastWithWorkload, multicastWithWorkload } from "../family/workload.ts";
import { type IpMulticast, type IpMulticastOptions, ipMulticast } from "./ip-multicast.ts";
import { evenly } from "./vocabulary.ts";

type Used = MulticastWithWorkload<IpMulticast>;
const promised = [fifoOrder, ...delivery];

type Bounds = Partial<ExploreOptions<Used>>;

/** Eventually, every node that knows of a message has delivered it. No run sends messages forever without progress. */
const progress: Property<Used> = {
  name: "progress",
  claim: "eventually every node has delivered all messages that any node has delivered",
  when: "eventually",
  holds: ({ alive, state }) =>
    new Set(
      alive.map((node) =>
        state(node)
          .multicast.streams.map(({ delivered }) => delivered)
          .join(),
      ),
    ).size === 1,
};

/** Explores every run. Each node sends the given number of messages, over unordered links. */
function exploring(messages: readonly number[], options: Partial<IpMulticastOptions>, bounds: Bounds = {}) {
  return reaching(
    explore<Used>({
      protocol: multicastWithWorkload(ipMulticast(options), promised),
      nodes: range(0, messages.length - 1),
      network: "bag",
      timers: "quiet",
      begin: "idle",
      asks: (node) => (messages[node] === 0 ? [] : [use(messages[node] as number)]),
      ...bounds,
    }),
    "delivered",
  );
}

describe("reliable multicast over IP multicast: every run, with timers above the bound on delay", () => {
  it.each([
    ["2 nodes, 2 messages, 2 losses", [2, 0], { losses: 2 }, 1_360],
    ["2 nodes, 1 message each, a loss and a duplicate", [1, 1], { losses: 1, duplications: 1 }, 2_461],
    ["3 nodes, 1 message, a loss", [1, 0, 0], { losses: 1 }, 2_661],
    ["3 nodes, 2 messages, a loss", [2, 0, 0], { losses: 1 }, 20_932],
    ["3 nodes, 1 message, 2 losses", [1, 0, 0], { losses: 2 }, 19_370],
  ] as const)(
    "%s: integrity, FIFO, validity, agreement, stability, bounded buffers",
    (_what, messages, bounds, states) => {
      expect(exploring(messages, evenly, bounds)).toMatchObject({ verdict: "holds", states });
    },
  );

  it.each([
    ["2 nodes, 2 messages, a loss", [2, 0], 339],
    ["3 nodes, 1 message, a loss", [1, 0, 0], 2_661],
  ] as const)("%s: no run sends messages forever without progress", (_what, messages, states) => {
    const found = exploring(messages, evenly, { losses: 1, properties: [progress] });
    expect(found).toMatchObject({ verdict: "holds", states });
  });

  it("without session messages the loss of the last message is not detected", () => {
    const found = exploring([1, 0], { sessions: false }, { losses: 1 });
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: agreement" } });
    expect(told(found)).toEqual(["0 receives command send", "1 lose"]);
  });

  it("holds without session messages and without losses", () => {
    expect(exploring([1, 1, 1], { sessions: false })).toMatchObject({ verdict: "holds", states: 1_008 });
  });
});

describe("reliable multicast over IP multicast: every run, without bounds on delay", () => {
  const always = ipMulticast().properties.filter(({ when }) => when === "always");
  const safety = multicastWithWorkload(ipMulticast(), promised).properties.filter(({ when }) => when === "always");

  it("integrity, FIFO and bounded buffers do not depend on time", () => {
    expect(safety.map(({ name }) => name)).toEqual([
      "workload: C4 FIFO order",
      "workload: integrity",
      ...always.map(({ name }) => name),
    ]);
    const within = (messages: readonly number[], maxRepeats: number, bounds: Bounds) =>
      exploring(messages, { ...evenly, maxRepeats }, { timers: "free", properties: safety, ...bounds });
    expect(within([1, 0], 1, { losses: 1 })).toMatchObject({ verdict: "holds", states: 814 });
    expect(within([2, 0], 0, { losses: 1, duplications: 1 })).toMatchObject({ verdict: "holds", states: 791 });
    expect(within([1, 0, 0], 0, { losses: 1 })).toMatchObject({ verdict: "holds", states: 12_991 });
  });
});

describe("reliable multicast over IP multicast, as presented in a lecture", () => {
  it("no node delivers the first message, not even its sender", () => {
    const system = systemFor({ protocol: "ip-multicast", variant: "lecture", nodes: [0, 1], initiators: [0] });
    const found = explore(system);
    expect(found).toMatchObject({ verdict: "violated", property: { name: "workload: validity" } });
    expect(found.path.map(({ move }) => `${move.node} ${move.kind}`)).toEqual(["0 command", "1 receive"]);
  });
});
