import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { adversity, befall, recover } from "../../../test/protocols/group-adversity.ts";
import { type GroupStage, groupStage } from "../../../test/protocols/group-stage.ts";
import { happenedBefore } from "../../../test/protocols/happened-before.ts";
import type { NodeId, Protocol, Vocabulary } from "../../core/protocol.ts";
import { type GroupOrders, virtualSynchrony } from "../../history/virtual-synchrony.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { logLine } from "../../trace/log.ts";
import { flushCausal, flushCausalTotal, flushFifo, flushFifoTotal, flushIsis } from "./parts/flush.ts";
import { type ViewSynchrony, viewSynchrony } from "./view-synchrony.ts";

const range = (nodes: number): NodeId[] => Array.from({ length: nodes }, (_, i) => i);

function stage<M extends Vocabulary>(channel: Protocol<M>, nodes: number, story: string[] = []): GroupStage<M> {
  const group = groupStage(channel, {
    nodes: range(nodes),
    seed: 1,
    delayMs: 10,
    trace: (entry) => story.push(logLine(entry as TraceEntry)),
  });
  for (const node of range(nodes)) group.start(node);
  group.sim.run(1_000);
  story.length = 0;
  return group;
}

describe("view synchrony: the worked examples", () => {
  it("the last message of a crashed node reaches one of the others, and so both, before the next view", async () => {
    const story: string[] = [];
    const group = stage(viewSynchrony({ views: { remindMs: 0 } }), 3, story);
    group.sim.cut(2, 0);
    group.send(2);
    group.sim.run(1_005);
    group.sim.crash(2);
    group.tell(0, { type: "suspect", node: 2 }); // The message cannot have reached 0 otherwise.
    group.sim.run(1_200);
    const kept = story.filter((line) => !/alive|beat|crashed\)/.test(line));
    expect(kept.filter((line) => /delivered|installed/.test(line) && /node 0/.test(line))).toHaveLength(2);
    for (const node of [0, 1]) expect(group.payloads(node)).toEqual(["2:1"]);
    expect(virtualSynchrony(group.records, { fifo: true })).toEqual([]);
    expect(group.sim.violations).toEqual([]);
    await expect(`${kept.join("\n")}\n`).toMatchFileSnapshot("stories/view-synchrony-last-words.txt");
  });

  it("the sender of a total order crashes before it has sent the agreed position: no member is blocked", async () => {
    const story: string[] = [];
    const group = stage(flushIsis({ views: { remindMs: 0 } }), 3, story);
    group.send(0);
    group.sim.run(1_015);
    group.sim.crash(0);
    group.sim.run(1_030);
    group.send(1);
    group.sim.run(3_000);
    for (const node of [1, 2]) expect(group.payloads(node)).toEqual(["0:1", "1:1"]);
    expect(virtualSynchrony(group.records, { fifo: true, total: true })).toEqual([]);
    expect(group.sim.violations).toEqual([]);
    const kept = story.filter((line) => !/alive|beat|session|crashed\)/.test(line));
    await expect(`${kept.join("\n")}\n`).toMatchFileSnapshot("stories/isis-flush-sender-crashes.txt");
  });

  it("a minority delivers nothing more in total order and reports that it is stalled; the majority continues", () => {
    const group = stage(flushIsis(), 5);
    group.sim.partition([
      [0, 1],
      [2, 3, 4],
    ]);
    group.send(0);
    group.sim.run(2_000);
    group.send(2);
    group.sim.run(3_000);
    for (const node of [0, 1]) expect(group.payloads(node)).toEqual([]);
    for (const node of [2, 3, 4]) expect(group.payloads(node)).toEqual(["2:1"]);
    expect(group.emitted.filter((said) => said.startsWith("stalled"))).toEqual(["stalled 0", "stalled 1"]);
    group.send(1); // This message waits for a view that allows sending …
    group.sim.heal();
    group.sim.run(6_000);
    for (const node of [2, 3, 4]) expect(group.payloads(node)).toEqual(["2:1", "1:1"]);
    for (const node of [0, 1]) expect(group.payloads(node)).toEqual(["1:1"]); // … and 0's first message is lost.
    expect(group.emitted).toEqual(expect.arrayContaining(["resumed 0", "resumed 1"]));
    expect(virtualSynchrony(group.records, { fifo: true, total: true })).toEqual([]);
    expect(group.sim.verdict()).toEqual([]);
  });

  it("messages sent while the group changes wait and are not lost; a leaver's last messages are in its last view", () => {
    const group = stage(flushCausalTotal(), 4);
    group.send(3);
    group.tell(3, { type: "leave" });
    group.sim.run(1_045); // The others have received the request to block.
    expect(group.sim.world.state(0).multicast.upper.membership).toBe("changing");
    for (const node of [0, 1, 2]) group.send(node);
    group.sim.run(2_000);
    for (const node of [0, 1, 2]) {
      expect(group.payloads(node)[0]).toBe("3:1");
      expect(group.payloads(node).slice(1).toSorted()).toEqual(["0:1", "1:1", "2:1"]);
    }
    const lives = group.records.map(({ log }) => log.filter((entry) => "delivered" in entry).length);
    expect(lives).toEqual([4, 4, 4, 1]);
    expect(group.emitted.filter((said) => !said.startsWith("stable"))).toContain("left 3");
    expect(virtualSynchrony(group.records, { fifo: true, total: true })).toEqual([]);
  });

  it.each([
    ["nothing above it", viewSynchrony],
    ["one layer", flushFifo],
    ["two layers", flushCausalTotal],
  ] as const)("a leaving node reports that as its last event: %s", (_what, channel) => {
    const group = stage(channel() as unknown as Protocol<ViewSynchrony>, 4);
    group.tell(3, { type: "leave" });
    group.sim.run(2_000);
    const events = group.sim.events(3).flatMap(({ type, body }) => (type === "multicast" ? [body.type] : []));
    expect(events).toEqual(["installed", "blocked", "ejected", "left"]);
  });

  it("a node that learns of a view only when the next is prepared sends its waiting messages in it, and then blocks", () => {
    const group = stage(flushFifo({ views: { remindMs: 0 } }), 3);
    group.sim.crash(1);
    group.tell(0, { type: "suspect", node: 1 });
    while (group.sim.messages.byType.accept !== 3) group.sim.run(group.sim.now + 1);
    group.send(2); // Node 2 is blocked.
    group.sim.cut(0, 2);
    group.sim.run(group.sim.now + 50);
    group.sim.mend(0, 2);
    group.start(1); // The view is about to change again before 2 learns of the last one.
    group.tell(0, { type: "restore", node: 1 });
    group.sim.run(group.sim.now + 2_000);
    for (const node of [0, 2]) {
      const log = group.records.find((record) => record.node === node)?.log;
      expect(log?.map((entry) => Object.keys(entry)[0])).toEqual(["installed", "installed", "delivered", "installed"]);
    }
    expect(virtualSynchrony(group.records, { fifo: true })).toEqual([]);
    expect(group.sim.violations).toEqual([]);
  });

  it.each([
    ["isis", flushIsis, ["0:1", "1:1"]],
    ["fifo-total", flushFifoTotal, ["0:1", "1:1"]],
    ["causal-total", flushCausalTotal, ["1:1"]],
  ] as const)(
    "%s: only one node knew the agreed position and answered, and both crash: causal-total alone keeps happened-before",
    (order, channel, survivors) => {
      const { note, violations } = happenedBefore();
      const plain = channel() as unknown as Protocol<ViewSynchrony>;
      const group = groupStage(plain, { nodes: range(5), seed: 1, delayMs: 10, channels: "reliable", trace: note });
      for (const node of range(5)) group.start(node);
      group.sim.run(1_000);
      group.send(1);
      group.sim.run(1_011); // All nodes have proposed.
      for (const node of [2, 3, 4]) group.sim.cut(1, node);
      while (group.payloads(0).length === 0) group.sim.run(group.sim.now + 1);
      group.sim.crash(1);
      group.send(0);
      group.sim.crash(0);
      group.sim.run(5_000);
      for (const node of [2, 3, 4]) expect(group.payloads(node)).toEqual(survivors);
      const broken = [2, 3, 4].map((node) => `node ${node} delivered 0:1 before 1:1`);
      expect(violations).toEqual(order === "causal-total" ? [] : broken);
      expect(virtualSynchrony(group.records, { fifo: true, total: true })).toEqual([]);
      expect(group.sim.violations).toEqual([]);
    },
  );

  it("without a majority the group installs no further views: the remaining nodes stay silent", () => {
    const group = stage(flushIsis(), 3);
    for (const node of [1, 2]) group.sim.crash(node);
    group.send(0);
    group.sim.run(10_000);
    expect(group.payloads(0)).toEqual([]);
    expect(group.emitted.filter((said) => said.startsWith("stalled"))).toEqual(["stalled 0"]);
    expect(group.sim.verdict().map(({ property }) => property)).toEqual([
      "lower: views: the group is the nodes that want to be in it",
      "agreement",
      "lower: views: no node stays silent",
    ]);
  });

  it("a node that has lost its journal breaks its promise: there are two views with one number", () => {
    const group = stage(viewSynchrony(), 3);
    group.sim.partition([[0, 1], [2]]);
    group.sim.run(2_000);
    group.sim.crash(1, { journal: "lost" });
    group.sim.partition([[0], [1, 2]]);
    group.start(1);
    group.sim.run(5_000);
    expect(virtualSynchrony(group.records).map(({ rule }) => rule)).toContain("agreement on views");
  });
});

describe("view synchrony, under any faults", () => {
  const unordered = () => viewSynchrony();
  type Ordered = readonly [string, () => unknown, "lossy" | "reliable", GroupOrders & { readonly causal?: boolean }];
  const without: Ordered = ["none", unordered, "lossy", { fifo: true }];
  const ordered: readonly Ordered[] = [
    ["fifo", flushFifo, "lossy", { fifo: true }],
    ["causal", flushCausal, "lossy", { fifo: true, causal: true }],
    ["isis", flushIsis, "reliable", { total: true }],
    ["fifo-total", flushFifoTotal, "reliable", { fifo: true, total: true }],
    ["causal-total", flushCausalTotal, "reliable", { fifo: true, causal: true, total: true }],
  ];
  const title = "%s: the same views, the same messages in each, and eventually one view with all nodes";
  it.each([without])(title, (...group) => isVirtuallySynchronous(group, 10));
  it.each(ordered)(title, { tags: ["long"] }, (...group) => isVirtuallySynchronous(group, 5));
  it.each([without, ...ordered])(`${title}: longer`, { tags: ["larger"] }, (...group) =>
    isVirtuallySynchronous(group, 20),
  );

  function isVirtuallySynchronous([, channel, channels, { causal, ...orders }]: Ordered, numRuns: number): void {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 2, max: 5 }), adversity(5, 80), (seed, nodes, acts) => {
        const { note, violations } = happenedBefore();
        const group = groupStage<ViewSynchrony>(channel() as Protocol<ViewSynchrony>, {
          nodes: range(nodes),
          seed,
          delayMs: [1, 10],
          channels,
          trace: note,
        });
        for (const node of range(nodes)) group.start(node);
        befall(group, range(nodes), acts);
        recover(group, range(nodes));
        for (const node of range(nodes)) group.send(node);
        group.sim.run(group.sim.now + 2_000);
        expect(virtualSynchrony(group.records, orders)).toEqual([]);
        if (causal === true) expect(violations).toEqual([]);
        expect(group.sim.verdict()).toEqual([]);
        for (const node of range(nodes)) {
          const log = group.records.findLast((record) => record.node === node)?.log ?? [];
          const last = log.findLast((entry) => "installed" in entry);
          expect(last).toMatchObject({ installed: { members: range(nodes) } });
          expect(
            group
              .payloads(node)
              .slice(-nodes)
              .toSorted()
              .map((payload) => payload.slice(0, 1)),
          ).toEqual(range(nodes).map(String));
        }
      }),
      { numRuns },
    );
  }
});
