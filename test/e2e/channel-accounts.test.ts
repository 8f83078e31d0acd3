/** Tests the checker of channel reports. It must detect every broken promise. */
import { expect, test } from "vitest";
import type { ChannelState } from "../../src/cluster/services/channel-api.ts";
import { broken, type Run } from "./channel-accounts.ts";
import type { Report } from "./channel-process.ts";

const name = "room";

function said(turn: number, view: number | null, members: string, state: ChannelState = "member"): Report {
  return { kind: "view", name, turn, view, members: [...members].map(Number), state };
}

/** Returns the report of a delivery. The payload is `BURST of SENDER NUMBER`. */
function got(turn: number, view: number, payload: string, id = idOf(view, payload)): Report {
  return { kind: "delivered", name, turn, view, payload, id, from: Number(payload.split(" ")[2]) };
}

const idOf = (view: number, payload: string): string => `${view}.${payload.split(" ")[2]}.${payload.split(" ")[0]}.0`;

const settled = (view: number, payload: string, id = idOf(view, payload)): Report => ({
  ...{ kind: "sent", name, prefix: "", refused: [] },
  settled: [{ payload, id, view }],
});

const refused = (payload: string, code: string, phase: string): Report => ({
  ...{ kind: "sent", name, prefix: "", settled: [] },
  refused: [{ payload, code, phase }],
});

/** Three members. The third is left out of view 2 and returns in view 3. */
const one: readonly Report[] = [
  ...[said(0, 1, "123"), got(1, 1, "1 of 1 1"), got(1, 1, "2 of 2 1"), got(2, 1, "3 of 3 1")],
  ...[said(3, 1, "123", "blocked"), said(4, 2, "12"), got(4, 2, "4 of 1 1"), settled(2, "4 of 1 1")],
  ...[said(5, 2, "12", "blocked"), said(5, 3, "123"), got(6, 3, "5 of 3 1"), got(6, 3, "6 of 1 1")],
];
const two = one.filter(({ kind: what }) => what !== "sent");
const three: readonly Report[] = [
  ...[said(0, 1, "123"), got(1, 1, "1 of 1 1"), got(1, 1, "2 of 2 1"), said(2, 1, "123", "outside")],
  ...[refused("3 of 3 1", "send-uncertain", "uncertain"), said(3, 3, "123")],
  ...[got(4, 3, "5 of 3 1"), got(4, 3, "6 of 1 1")],
];

const runs = (...those: (readonly Report[])[]): Run[] => those.map((reports, k) => ({ id: k + 1, reports }));
const found = (second: readonly Report[], third = three) => broken(runs(one, second, third), "causal-total");
const without = (reports: readonly Report[], at: number) => reports.filter((_, k) => k !== at);
const swapped = (reports: readonly Report[], at: number) =>
  without(reports.toSpliced(at + 2, 0, reports[at] as Report), at);

test("accepts correct reports", () => {
  for (const order of ["none", "fifo", "causal", "total", "causal-total"] as const)
    expect(broken(runs(one, two, three), order)).toEqual([]);
});

test("accepts messages and views in any order within a turn", () => {
  const late = [...two.slice(0, 4), said(4, 2, "12"), said(4, 2, "12", "blocked"), said(4, 3, "123")];
  expect(found([...late, got(4, 2, "4 of 1 1"), got(4, 3, "5 of 3 1"), got(4, 3, "6 of 1 1")])).toEqual([]);
  const early = [...two.slice(0, 4), got(4, 2, "4 of 1 1"), got(4, 3, "5 of 3 1"), got(4, 3, "6 of 1 1")];
  expect(found([...early, said(4, 2, "12"), said(4, 3, "123")])).toEqual([]);
});

test("a program that starts later receives earlier messages, of views that others know", () => {
  const before = [said(9, 3, "123"), got(9, 1, "1 of 1 1"), got(9, 1, "2 of 2 1"), got(9, 3, "5 of 3 1")];
  expect(found(two, [...before, got(9, 3, "6 of 1 1")])).toEqual([]);
  expect(found(two, [said(9, 3, "123"), got(9, 2, "4 of 1 1")])).toEqual([
    "node 3 (incarnation 2) installed view 2, but is not a member of it",
  ]);
  expect(found(two, [said(9, 3, "123"), got(9, 0, "1 of 1 1")])).toEqual([
    "member 3, in no view, delivered 1 of 1 1 as of view 0",
  ]);
});

test("a program that starts while its member is stalled receives messages of the current view", () => {
  const stalled = [said(9, 1, "123", "stalled"), got(9, 1, "1 of 1 1"), got(10, 1, "2 of 2 1"), said(11, 1, "123")];
  expect(found(two, stalled)).toEqual([]);
  expect(found(two, [...stalled, said(11, 1, "123", "outside"), said(12, 3, "123")])).toEqual([]);
});

test.each<[string, string, Report[]]>([
  [
    "a message that is missing",
    "node 1 (incarnation 0) delivered 1.2.2.0 and node 2 (incarnation 1) did not, in view 1, before both went to view 2",
    without(two, 2),
  ],
  [
    "two in another order",
    "node 1 (incarnation 0) delivered 1.1.1.0 where node 2 (incarnation 1) delivered 1.2.2.0, in view 1",
    swapped(two, 1),
  ],
  [
    "one that names a view which has gone by in an earlier turn",
    "member 2, in view 3, delivered 7 of 1 1 as of view 2",
    [...two, got(7, 2, "7 of 1 1")],
  ],
  [
    "one that names a view which is to come in a later turn",
    "member 2, in view 2, delivered 5 of 3 1 as of view 3",
    two.toSpliced(
      two.findIndex(({ kind: what }, k) => what === "view" && k > 7),
      0,
      got(4, 3, "5 of 3 1"),
    ),
  ],
  [
    "one of a node that is not in the view",
    "node 2 (incarnation 1) delivered 2.3.7.0 in view 2, but node 3 is not a member of it",
    two.toSpliced(7, 0, got(4, 2, "7 of 3 1")),
  ],
  ["one that comes twice", "node 2 (incarnation 1) delivered 2#2000001 twice", [...two, got(6, 3, "2 of 2 1")]],
  [
    "one under another's name",
    "member 2 was delivered 8 of 1 1 as from 2",
    [...two, { ...got(6, 3, "8 of 1 1"), from: 2 } as Report],
  ],
  ["one that overtakes", "node 2 (incarnation 1) delivered 3#3000002 after #5000001", [...two, got(6, 3, "3 of 3 2")]],
  [
    "one that was settled and not delivered",
    "9 of 2 1 was settled as 3.2.9.0, and its sender was not delivered that",
    [...two, settled(3, "9 of 2 1")],
  ],
  [
    "one settled under another id",
    "4 of 1 1 was settled as 2.1.5.0, and its sender was not delivered that",
    [...two, settled(2, "4 of 1 1", "2.1.5.0")],
  ],
  [
    "one that was never sent",
    "member 1 was delivered 2 of 2 1, which was never sent",
    [...two, refused("2 of 2 1", "member-left", "never-sent")],
  ],
  [
    "one that was refused without a reason",
    "9 of 2 1 was refused, with send-uncertain",
    [...two, refused("9 of 2 1", "send-uncertain", "uncertain")],
  ],
])("detects %s", (_what, sentence, second) => {
  expect(found(second)).toContain(sentence);
});

test("detects deliveries outside of any view", () => {
  const outside = three.toSpliced(5, 0, got(3, 1, "3 of 3 1"));
  expect(found(two, outside)).toEqual(["member 3, in no view, delivered 3 of 3 1 as of view 1"]);
  // The delivery is reported in the same turn as the exclusion.
  expect(found(two, three.toSpliced(4, 0, got(2, 1, "3 of 3 1")))).toEqual([]);
});

test("a message that all members had is delivered to the remaining ones, even if its sender leaves", () => {
  const last = [...three.slice(0, 3), got(1, 1, "3 of 3 1"), settled(1, "3 of 3 1")];
  const others = [without(one, 3), without(two, 3)];
  expect(broken(runs(one, two, last), "causal")).toEqual([]);
  const sentence = (member: number) => `member ${member} left view 1 without 3 of 3 1, which was settled`;
  expect(broken(runs(...others, last), "causal")).toEqual([sentence(1), sentence(2)]);
  // In total orders, a message is settled when it has been delivered to its sender.
  expect(broken(runs(...others, last), "causal-total")).toEqual([]);
});

test("a process that is killed in the middle of a turn may not have reported all of it", () => {
  const cut = [...two.slice(0, 4), said(4, 2, "12")];
  expect(broken([...runs(one, cut, three), { id: 2, reports: [] }], "causal-total")).toEqual([]);
  expect(
    broken([...runs(one, [...cut, got(5, 2, "4 of 1 1")], three), { id: 2, reports: [] }], "causal-total"),
  ).toEqual([]);
  const lacks = [...without(two.slice(0, 4), 3), said(4, 2, "12"), got(5, 2, "4 of 1 1")];
  expect(broken([...runs(one, lacks, three), { id: 2, reports: [] }], "causal-total")).not.toEqual([]);
  const out = [...two.slice(0, 4), said(4, 1, "123", "outside"), refused("7 of 2 1", "send-uncertain", "uncertain")];
  expect(broken([...runs(one, out, three), { id: 2, reports: [] }], "causal-total")).toEqual([]);
});

test("a killed process may not have reported the delivery of a settled message", () => {
  const killed = (reports: readonly Report[]) =>
    broken([...runs(one, reports, three), { id: 2, reports: [] }], "causal-total");
  const unsaid = [...two, settled(3, "9 of 2 1")];
  expect(found(unsaid)).not.toEqual([]);
  expect(killed(unsaid)).toEqual([]);
  expect(killed([...two, settled(2, "4 of 1 1", "2.1.5.0")])).not.toEqual([]);
});
