import { expect, test } from "vitest";
import type { ClusterPicture } from "../../../src/cluster/feed.ts";
import type { TraceEntry } from "../../../src/trace/entry.ts";
import { factsOf } from "../diagram/topology/facts.ts";
import { placed } from "../diagram/topology/places.ts";
import { Chronicle } from "../history/chronicle.ts";
import { clusterOf, nodePicture, pictureOf, receive, send } from "../history/fixtures.ts";
import { arrangementOf, captionOf, flightsOf, linksBetween } from "./arrangement.ts";

const presented = { rows: [2, 0, 1], carriers: ["token"], work: "entry", costs: [] } as const;
const ring: ClusterPicture = {
  ...pictureOf([0, 1, 2].map((id) => nodePicture(id, { role: "released" }))),
  presented: { ...presented, topology: "ring" },
};
const placedAt = (at: number, node: number, position: object): TraceEntry => ({
  at,
  node,
  kind: "view",
  view: { role: "released", position } as { role: string },
});
const token = (at: number, from: number, to: number): TraceEntry => ({
  at,
  node: from,
  kind: "send",
  id: "a",
  to,
  message: { type: "token" },
});

test("shows the token at one node or in transit, even if one node's entries arrive first", () => {
  const chronicle = new Chronicle(ring, [
    // All entries of the sender arrive first.
    placedAt(1, 0, { holds: "token" }),
    token(10, 0, 1),
    placedAt(10, 0, {}),
    { at: 30, node: 1, kind: "receive", id: "a", from: 0, message: { type: "token" } },
    placedAt(30, 1, { holds: "token" }),
  ]);
  const told = (at: number) =>
    factsOf(
      arrangementOf(ring, chronicle.lives, at),
      flightsOf(chronicle.messages, ring.presented?.carriers ?? [], at),
    );
  expect(told(5)).toEqual(["node 0 has the token"]);
  expect(told(20)).toEqual(["token in transit: 0 → 1"]);
  expect(told(40)).toEqual(["node 1 has the token"]);
});

test("places nodes in the order of their ring, and shows no token at a crashed node", () => {
  const chronicle = new Chronicle(ring, [placedAt(1, 0, { holds: "token" })]);
  expect(arrangementOf(ring, chronicle.lives, 2).nodes.map(({ node }) => node)).toEqual([2, 0, 1]);
  chronicle.add([{ at: 5, node: 0, kind: "crash" }]);
  expect(arrangementOf(ring, chronicle.lives, 6).nodes[1]?.position).toEqual({});
});

test("knows all positions when the page is opened later", () => {
  const view = { role: "released", position: { holds: "token" } } as { role: string };
  const late = { ...ring, nodes: [...ring.nodes.slice(0, 2), nodePicture(2, view)] };
  const { lives } = new Chronicle(late, []);
  expect(factsOf(arrangementOf(late, lives, 1_000), [])).toEqual(["node 2 has the token"]);
});

test("identifies each of many servers by its clients", () => {
  const view = { role: "node of 1", position: { follows: 1 } } as { role: string };
  const cluster = { ...ring, nodes: [nodePicture(0, view), nodePicture(1, null)] };
  const circle = { ...cluster, presented: { ...presented, rows: [0, 1], topology: "plane" as const } };
  const { lives } = new Chronicle(circle, []);
  expect(arrangementOf(circle, lives, 1_000).nodes.map(({ leader }) => leader)).toEqual([1, null]);
});

test("fades messages that have arrived, and does not count them as in transit", () => {
  const { messages } = new Chronicle(clusterOf([2, 2, 2]), [send(100, 0, 1), receive(120, 0, 1, 100), send(110, 0, 2)]);
  const shown = (at: number) => flightsOf(messages, [], at).map(({ to, isOver }) => `${to}${isOver ? " over" : ""}`);
  expect(shown(99)).toEqual([]);
  expect(shown(115)).toEqual(["1", "2"]);
  expect(shown(130)).toEqual(["1 over", "2"]);
  expect(shown(2_000)).toEqual(["2"]);
});

test.each([
  ["held, voted for 2", "inside"],
  ["wanted", "waiting"],
  ["follower", "follower"],
])("a node that is %s is captioned %s", (role, caption) => {
  expect(captionOf(nodePicture(0, { role }))).toBe(caption);
});

test("draws a cut link with a gap in its middle, in one or both directions", () => {
  const arrangement = arrangementOf(clusterOf([2, 2, 2]), new Map(), 0);
  const placing = placed(arrangement, { width: 300, height: 300 });
  const network = {
    cuts: [
      [0, 1],
      [1, 0],
      [2, 0],
    ],
    dropRate: 0,
    delayMs: [0, 0],
  } as const;
  const links = linksBetween(placing, network);
  expect(links.map(({ key, cut }) => [key, cut])).toEqual([
    ["0–1", "both"],
    ["0–2", "oneWay"],
    ["1–2", "none"],
  ]);
  for (const { gap, start, end } of links)
    expect(Math.hypot(gap[0].x - gap[1].x, gap[0].y - gap[1].y)).toBeLessThan(
      Math.hypot(start.x - end.x, start.y - end.y),
    );
});
