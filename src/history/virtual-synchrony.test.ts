import { describe, expect, it } from "vitest";
import type { NodeId } from "../core/protocol.ts";
import { type GroupEntry, type GroupRecord, virtualSynchrony } from "./virtual-synchrony.ts";

const view = (number: number, ...members: NodeId[]): GroupEntry => ({ installed: { view: number, members } });
const got = (id: string): GroupEntry => ({ delivered: { id, from: Number.parseInt(id, 10) } });
const ejected: GroupEntry = { ejected: true };
const record = (node: NodeId, ...log: GroupEntry[]): GroupRecord => ({ node, incarnation: 1, log });
const both = { fifo: true, total: true };

/** Three nodes. Node 2 crashes with a message that no other node receives. */
const sound = [
  record(0, view(1, 0, 1, 2), got("0.1"), got("2.1"), view(2, 0, 1), got("1.1")),
  record(1, view(1, 0, 1, 2), got("0.1"), got("2.1"), view(2, 0, 1), got("1.1")),
  record(2, view(1, 0, 1, 2), got("0.1"), got("2.1"), got("2.2")),
];
const violated = (records: GroupRecord[], orders = both): string[][] =>
  virtualSynchrony(records, orders).map(({ rule, what }) => [rule, what]);
/** Returns the valid recording with a different log for node 1. */
const with1 = (...log: GroupEntry[]): GroupRecord[] =>
  sound.map((each) => (each.node === 1 ? record(1, ...log) : each));

describe("virtual synchrony of recordings", () => {
  it("holds if a crashed node has delivered more than the survivors", () => {
    expect(violated(sound)).toEqual([]);
    expect(violated([])).toEqual([]);
  });

  it("requires nodes that move to the next view together to have delivered the same messages", () => {
    expect(violated(with1(view(1, 0, 1, 2), got("0.1"), view(2, 0, 1), got("1.1")))).toEqual([
      [
        "virtual synchrony",
        "node 0 (incarnation 1) delivered 2.1 and node 1 (incarnation 1) did not, in view 1, before both went to view 2",
      ],
    ]);
    const [missed] = violated(with1(view(1, 0, 1, 2), got("0.1"), got("2.1"), got("2.2"), view(2, 0, 1), got("1.1")));
    expect(missed?.[1]).toContain("node 1 (incarnation 1) delivered 2.2 and node 0 (incarnation 1) did not");
  });

  it("allows nodes to be behind in a view that none of them has left", () => {
    expect(violated(with1(view(1, 0, 1, 2), got("0.1"), got("2.1"), view(2, 0, 1)))).toEqual([]);
  });

  it("requires views with equal numbers to have equal members", () => {
    expect(violated(with1(view(1, 0, 1, 2), got("0.1"), got("2.1"), view(2, 1)))).toEqual([
      ["agreement on views", "view 2 has members 0, 1 for node 0 (incarnation 1), 1 for node 1 (incarnation 1)"],
    ]);
  });

  it("requires view numbers to grow by one, except after an ejection or a restart", () => {
    expect(violated([record(0, view(1, 0), view(3, 0))])).toEqual([
      ["views grow", "node 0 (incarnation 1) went from view 1 to 3 without being expelled in between"],
    ]);
    expect(violated([record(0, view(1, 0), ejected, view(3, 0))])).toEqual([]);
    expect(violated([record(0, view(2, 0)), { ...record(0, view(2, 0)), incarnation: 2 }])).toEqual([
      ["views grow", "node 0 (incarnation 2) installed view 2 after view 2"],
    ]);
  });

  it("allows no delivery outside a view, before the first one or after an ejection", () => {
    expect(violated([record(0, got("0.1"), view(1, 0), ejected, got("0.1"))])).toEqual([
      ["delivery in a view", "node 0 (incarnation 1) delivered 0.1 while it was not in any view"],
      ["delivery in a view", "node 0 (incarnation 1) delivered 0.1 while it was not in any view"],
    ]);
  });

  it("allows no duplicate delivery in a view, no delivery from outside it, and no view without its own node", () => {
    expect(violated([record(0, view(1, 0), got("0.1"), got("0.1"))], { fifo: false, total: true })).toEqual([
      ["integrity", "node 0 (incarnation 1) delivered 0.1 twice in view 1"],
    ]);
    expect(violated([record(0, view(1, 0), got("7.1"))])).toEqual([
      ["integrity", "node 0 (incarnation 1) delivered 7.1 in view 1, but node 7 is not a member of it"],
    ]);
    expect(violated([record(0, view(1, 7))])).toEqual([
      ["self-inclusion", "node 0 (incarnation 1) installed view 1, but is not a member of it"],
    ]);
    expect(violated([record(0, view(1, 0), got("0.1"), view(2, 0), got("0.1"))])).toEqual([]);
  });

  it("checks FIFO order on request: no number is skipped or comes too early", () => {
    const unordered = [record(0, view(1, 0), got("0.2"), got("0.1"))];
    expect(violated(unordered)).toEqual([
      ["FIFO order", "node 0 (incarnation 1) delivered 0.2 in view 1 when 0.1 was due"],
      ["FIFO order", "node 0 (incarnation 1) delivered 0.1 in view 1 when 0.3 was due"],
    ]);
    expect(virtualSynchrony(unordered)).toEqual([]);
  });

  it("checks total order on request, among nodes that move on together or are still together", () => {
    const turned = [record(0, view(1, 0, 1), got("0.1"), got("1.1")), record(1, view(1, 0, 1), got("1.1"), got("0.1"))];
    expect(violated(turned)).toEqual([
      ["total order", "node 0 (incarnation 1) delivered 0.1 where node 1 (incarnation 1) delivered 1.1, in view 1"],
    ]);
    expect(virtualSynchrony(turned, { fifo: true })).toEqual([]);
    const gone = turned.map(({ node, log }) => record(node, ...log, view(2, 0, 1)));
    expect(violated(gone).map(([rule]) => rule)).toEqual(["total order"]);
    // An ejected node may have delivered in a different order than the survivors.
    const without = [record(0, ...(turned[0]?.log ?? []), view(2, 0)), record(1, ...(turned[1]?.log ?? []), ejected)];
    expect(violated(without)).toEqual([]);
  });

  it("checks total order in the last view: a node that is behind may lack only the end", () => {
    const [a, b, c] = [got("0.1"), got("1.1"), got("0.2")];
    const there = (...log: GroupEntry[]) => [record(0, view(1, 0, 1), a, b, c), record(1, view(1, 0, 1), ...log)];
    for (const log of [[], [a], [a, b], [a, b, c]]) expect(violated(there(...log))).toEqual([]);
    const gap = [
      ["total order", "node 0 (incarnation 1) delivered 1.1 where node 1 (incarnation 1) delivered 0.2, in view 1"],
    ];
    expect(violated(there(a, c))).toEqual(gap);
    expect(violated(there(c), { fifo: false, total: true })).toEqual([
      ["total order", "node 0 (incarnation 1) delivered 0.1 where node 1 (incarnation 1) delivered 0.2, in view 1"],
    ]);
    expect(violated(there(a, c), { fifo: true, total: false })).toEqual([]);
    // A node that was ejected or restarted after a crash may have skipped messages.
    expect(violated(there(a, c, ejected))).toEqual([]);
    expect(violated([...there(a, c), { ...record(1), incarnation: 2 }])).toEqual([]);
  });
});

describe("orders across views, by the numbers in messages", () => {
  const said = (by: string, number: number, after: Record<string, number> = {}): GroupEntry => ({
    delivered: { id: `${by}${number}`, from: 0, sent: { by, number, after } },
  });
  const broken = (sending: "fifo" | "causal" | undefined, ...log: GroupEntry[]): string[][] =>
    virtualSynchrony([record(0, view(1, 0), ...log)], { sending }).map(({ rule, what }) => [rule, what]);

  it("FIFO: messages of one process come in the order of sending, though some may be missing", () => {
    expect(broken("fifo", said("a", 1), view(2, 0), said("b", 4), said("a", 3))).toEqual([]);
    expect(broken("fifo", said("a", 3), view(2, 0), said("a", 1))).toEqual([
      ["FIFO order", "node 0 (incarnation 1) delivered a#1 after #3"],
    ]);
    expect(broken(undefined, said("a", 3), said("a", 1))).toEqual([]);
  });

  it("causal: none comes after a message that was sent later by a process that had delivered it", () => {
    const answer = said("b", 1, { a: 2 });
    expect(broken("causal", said("a", 1), said("a", 2), answer, said("a", 3))).toEqual([]);
    expect(broken("causal", answer, said("a", 3))).toEqual([]); // a#1 and a#2 may be missing.
    expect(broken("causal", said("a", 1), answer, said("a", 2))).toEqual([
      ["causal order", "node 0 (incarnation 1) delivered a#2 after b#1, whose sender had already delivered it"],
    ]);
    expect(broken("fifo", said("a", 1), answer, said("a", 2))).toEqual([]);
  });

  it("no message comes twice, even in different views", () => {
    expect(broken(undefined, said("a", 1), view(2, 0), said("a", 1))).toEqual([
      ["integrity", "node 0 (incarnation 1) delivered a#1 twice"],
    ]);
  });
});
