// @module-tag long
import { describe, expect, it } from "vitest";
import { reaching } from "../../../test/protocols/reached.ts";
import { type ExploreOptions, explore } from "../../check/explore.ts";
import type { NodeId, Property, Protocol } from "../../core/protocol.ts";
import { totalOrder } from "./family/properties.ts";
import { type MulticastWithWorkload, multicastWithWorkload } from "./family/workload.ts";
import { stateIn } from "./ip-multicast/sessions.ts";
import { type FlushIsis, flushIsis } from "./parts/flush.ts";

/** Returns the protocol with all nodes in view 1 at the start. */
function settled(nodes: readonly NodeId[]): Protocol<FlushIsis> {
  const plain = flushIsis({ views: { remindMs: 0 } });
  const members = nodes.map((node) => ({ node, incarnation: 1 }));
  return {
    ...plain,
    init(self, peers) {
      const { upper, lower } = plain.init(self, peers);
      return {
        upper: { ...upper, view: 1, members: [...nodes], membership: "member" },
        lower: {
          multicast: stateIn(self, 1, [...nodes], []),
          views: { ...lower.views, incarnation: 1, view: { number: 1, members, cut: [] } },
        },
      };
    },
  };
}

type Used = MulticastWithWorkload<FlushIsis>;

/** Compares the views that both nodes have completed. */
const virtuallySynchronous: Property<Used> = {
  name: "virtual synchrony",
  claim: "all nodes in the same view delivered the same messages before it, in the same order",
  when: "always",
  holds: ({ alive, state }) => {
    const before = new Map<number, string>();
    return alive.every((node) => {
      const { view, delivered } = state(node).workload;
      const said = delivered.filter((letter) => letter.view < view).map(({ name }) => name);
      if (!before.has(view)) before.set(view, said.join());
      return before.get(view) === said.join();
    });
  },
};

function exploring(nodes: readonly NodeId[], senders: readonly NodeId[], more: Partial<ExploreOptions<Used>>) {
  const protocol = multicastWithWorkload(settled(nodes), [totalOrder]);
  return reaching(
    explore<Used>({
      protocol,
      nodes,
      network: "fifo",
      timers: "quiet",
      begin: "idle",
      crashNotification: (node) => ({ type: "multicast", body: { type: "suspect", node } }),
      asks: (node) => (senders.includes(node) ? [{ type: "workload", body: { type: "send", messages: 1 } }] : []),
      properties: [...protocol.properties, virtuallySynchronous],
      ...more,
    }),
    "delivered",
  );
}

describe("total order over view synchrony: every run of three nodes", () => {
  it.each([
    ["one sends, and one crashes", [0], { crashes: 1 }, 5_046],
    ["two send", [0, 1], {}, 30_059],
  ] as const)(
    "%s, with timers above all delays: C6, virtual synchrony, and no node waits for a departed one",
    (_what, senders, more, states) => {
      expect(exploring([0, 1, 2], senders, more)).toMatchObject({ verdict: "holds", states });
    },
  );

  it("one sends, one crashes, and two timers expire at any time: no violation within the bounds", () => {
    const found = exploring([0, 1, 2], [0], { crashes: 1, timers: "free", maxTimeouts: 2 });
    expect(found).toMatchObject({ verdict: "unknown", property: null, states: 23_525 });
  });

  it("a node that is not notified of the crash holds the message back forever", () => {
    const found = exploring([0, 1, 2], [0], { crashes: 1, crashNotification: () => null });
    expect(found.property?.name).toBe("agreement");
    const held = found.path.at(-1)?.states.map((state) => state?.multicast.upper.heldBack.length);
    expect(held?.toSorted()).toEqual([1, 1, undefined]);
  });
});
