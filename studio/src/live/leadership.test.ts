import { expect, test } from "vitest";
import { clusterOf, nodePicture, pictureOf } from "../history/fixtures.ts";
import { Life } from "../history/life.ts";
import { leadershipOf } from "./leadership.ts";
import { lastTakeover, takeoverInWords } from "./takeover.ts";

test("reports a leader that all nodes follow", () => {
  expect(leadershipOf(clusterOf([2, 2, 2]))).toEqual({
    leader: 2,
    headline: "Node 2 leads.",
    detail: "All 3 nodes agree.",
  });
});

test("reports nodes that do not know the leader yet", () => {
  const { leader, detail } = leadershipOf(clusterOf([null, 2, 2]));
  expect([leader, detail]).toEqual([2, "2 of 3 agree; node 0 has no leader."]);
});

test("reports a leader per side of a split", () => {
  const cluster = clusterOf([2, 2, 2, 4, 4]);
  const cut = { ...cluster, network: { ...cluster.network, cuts: [[2, 4]] } } as const;
  expect(leadershipOf(cut)).toEqual({
    leader: "split",
    headline: "The cluster is split.",
    detail: "0, 1 and 2 follow 2; 3 and 4 follow 4.",
  });
});

test("reports two leaders when no link is cut", () => {
  const { leader, headline } = leadershipOf(clusterOf([2, 2, 2, 4, 4]));
  expect([leader, headline]).toEqual(["split", "Leaders disagree."]);
});

test("reports the roles of the nodes without a leader", () => {
  const at = (...roles: string[]) =>
    leadershipOf(pictureOf(roles.map((role, id) => nodePicture(id, { role, leader: null }))));
  expect(at("idle", "idle")).toEqual({ leader: "none", headline: "No leader.", detail: "2 idle." });
  expect(at("candidate", "idle", "candidate").detail).toBe("2 candidate, 1 idle.");
});

test("reports a crashed leader that no node suspects yet", () => {
  const nodes = [nodePicture(0, { role: "follower", leader: 1 }), nodePicture(1, null, "exited")];
  const { leader, headline } = leadershipOf(pictureOf(nodes));
  expect([leader, headline]).toEqual(["none", "Node 1 has stopped."]);
});

test("puts the protocol's own sentence first, and repeats nothing", () => {
  const told = (leaders: readonly (number | null)[], headline: string) => {
    const cluster = clusterOf(leaders);
    const { headline: first, detail } = leadershipOf({
      ...cluster,
      spans: { spans: "leadership", term: "term" },
      headline,
    });
    return `${first} ${detail}`;
  };
  expect(told([2, 2, 2], "Term 3: node 2 leads.")).toBe("Term 3: node 2 leads. All 3 nodes agree.");
  expect(told([null, null], "No election has started yet.")).toMatch(/^No election has started yet\. 2 /);
  expect(told([2, 2, 2, 4, 4], "Nodes 2 and 4 both lead.")).toMatch(/^Nodes 2 and 4 both lead\. Leaders disagree\. /);
  expect(told([2, 2, 2], "No node is inside.")).toBe("No node is inside. Node 2 leads. All 3 nodes agree.");
});

test("ignores the belief of a paused node", () => {
  const nodes = [
    nodePicture(0, { role: "leader", leader: 0 }),
    nodePicture(1, { role: "leader", leader: 1 }, "paused"),
  ];
  expect(leadershipOf(pictureOf(nodes)).leader).toBe(0);
});

test("describes a protocol without leaders by its roles", () => {
  const nodes = [nodePicture(0, { role: "waiting" }), nodePicture(1, { role: "inside" })];
  expect(leadershipOf(pictureOf(nodes))).toEqual({
    leader: "none",
    headline: "2 nodes are running.",
    detail: "1 waiting, 1 inside.",
  });
});

test("measures a takeover from the leader's crash until another node leads", () => {
  const spans = { spans: "leadership", term: "term" } as const;
  const [heir, late] = [new Life(0, spans), new Life(1, spans)];
  heir.supposeBefore(nodePicture(0, { role: "follower", leader: 1 }));
  late.supposeBefore(nodePicture(1, { role: "leader", leader: 1 }));
  late.crashed(1_000);
  heir.viewed(1_352, { role: "leader", leader: 0 });
  const takeover = lastTakeover(
    new Map([
      [0, heir],
      [1, late],
    ]),
  );
  expect(takeover).toEqual({ from: 1, to: 0, fate: "gone", tookMs: 352, at: 1_000 });
  expect(takeover && takeoverInWords(takeover)).toBe("Last takeover: node 0, 352 ms after node 1 died.");
});

test("replaces a takeover by a later change of leader", () => {
  const spans = { spans: "leadership", term: "term" } as const;
  const [low, high] = [new Life(2, spans), new Life(3, spans)];
  const lives = new Map([
    [2, low],
    [3, high],
  ]);
  const sentence = () => {
    const takeover = lastTakeover(lives);
    return takeover && takeoverInWords(takeover);
  };
  low.supposeBefore(nodePicture(2, { role: "follower", leader: 3 }));
  high.supposeBefore(nodePicture(3, { role: "leader", leader: 3 }));
  expect(sentence()).toBeNull();
  high.paused(1_000);
  expect(sentence()).toBeNull();
  low.viewed(1_513, { role: "leader", leader: 2 });
  expect(sentence()).toBe("Last takeover: node 2, 513 ms after node 3 was paused.");
  high.resumed(9_000);
  high.viewed(9_020, { role: "leader", leader: 3 });
  low.viewed(9_021, { role: "follower", leader: 3 });
  expect(sentence()).toBe("Last change of leader: from node 2 to node 3.");
  high.crashed(12_000);
  low.viewed(12_400, { role: "leader", leader: 2 });
  expect(sentence()).toBe("Last takeover: node 2, 400 ms after node 3 died.");
});
