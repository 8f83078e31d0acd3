import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sentThroughLog } from "../../../bench/table/groups.ts";
import { endure, type Fate, fate, type LogStage, logStage, synchronyOf } from "../../../test/protocols/log-stage.ts";
import { range } from "../../../test/protocols/sizes.ts";
import type { Experiment } from "../../experiment/experiment.ts";
import { explore } from "../../experiment/explore.ts";

/** Creates nodes that are in one view and know the leader of the log. */
function group({ nodes = 3, keepsAll = false } = {}) {
  const stage = logStage(nodes, { delayMs: 10, keepsAll });
  for (const node of range(0, nodes - 1)) stage.start(node);
  stage.sim.run(1_500);
  const leader = range(0, nodes - 1).find((node) => stage.state(node).log.role.is === "leader") as number;
  const order = (node: number) => stage.state(node).multicast.order;
  expect(order(0)).toMatchObject({ isMember: true, members: range(0, nodes - 1) });
  return { ...stage, leader, others: range(0, nodes - 1).filter((node) => node !== leader), order };
}

/** Returns the delivered messages, without the views in their names. */
const said = (stage: LogStage, node: number): string[] => stage.payloads(node).map((name) => name.split("/")[0] ?? "");

function expectSound(stage: LogStage): void {
  expect(stage.late).toEqual([]);
  expect(synchronyOf(stage)).toEqual([]);
  expect(stage.sim.verdict()).toEqual([]);
}

describe("multicast through the log: worked examples", () => {
  it("delivers messages in log order, the same at all members", () => {
    const { sim, send, ...stage } = group();
    for (const node of [0, 1, 2, 1]) send(node);
    sim.run(2_000);
    const first = said({ sim, send, ...stage }, 0);
    expect(first.toSorted()).toEqual(["0.1", "1.1", "1.2", "2.1"]);
    for (const node of [1, 2]) expect(said({ sim, send, ...stage }, node)).toEqual(first);
    expectSound({ sim, send, ...stage });
  });

  it.each([3, 5, 7])(
    "costs 3(N − 1) messages from the leader of the log, one more from another node: N = %i",
    (nodes) => {
      expect(sentThroughLog(nodes, true)).toEqual({ deliveries: nodes, messages: 3 * (nodes - 1), time: 3 });
      expect(sentThroughLog(nodes, false)).toEqual({ deliveries: nodes, messages: 3 * (nodes - 1) + 1, time: 4 });
    },
  );

  it("waits for no node: messages sent while a member of the view is down are delivered at once", () => {
    const stage = group();
    const [gone = 0, other = 0] = stage.others;
    stage.sim.crash(gone);
    stage.send(other);
    stage.sim.run(stage.sim.now + 50);
    for (const node of [stage.leader, other]) expect(said(stage, node)).toEqual([`${other}.1`]);
    expect(stage.order(other).members).toContain(gone);
    stage.sim.run(stage.sim.now + 3_000);
    expect(stage.order(other).members).toEqual([stage.leader, other].toSorted((a, b) => a - b));
    expectSound(stage);
  });

  it("a member that joins late delivers the messages from its view on", () => {
    const stage = logStage(3, { delayMs: 10 });
    for (const node of [0, 1]) stage.start(node);
    stage.sim.run(3_000);
    stage.send(0);
    stage.sim.run(3_500);
    stage.start(2);
    stage.sim.run(4_500);
    stage.send(1);
    stage.sim.run(5_000);
    expect([0, 1, 2].map((node) => said(stage, node))).toEqual([["0.1", "1.1"], ["0.1", "1.1"], ["1.1"]]);
    expect(stage.state(2).multicast.order.members).toEqual([0, 1, 2]);
    expectSound(stage);
  });

  it("a minority delivers nothing; once it is back it sends its messages, and it misses none although its session ended", () => {
    const stage = group({ keepsAll: true });
    const [away = 0, other = 0] = stage.others;
    stage.sim.partition([[away]]);
    stage.send(away);
    stage.sim.run(stage.sim.now + 4_000);
    stage.send(other);
    stage.sim.run(stage.sim.now + 100);
    expect(said(stage, away)).toEqual([]);
    expect(stage.order(away)).toMatchObject({ membership: "inside", isMember: false });
    stage.send(away); // This message waits until the node is a member again.
    stage.sim.heal();
    stage.sim.run(stage.sim.now + 3_000);
    for (const node of [stage.leader, away])
      expect(said(stage, node)).toEqual([`${other}.1`, `${away}.1`, `${away}.2`]);
    expectSound(stage);
  });

  it("a member that a snapshot takes past messages is ejected and enters again, although its session continues", () => {
    const stage = group();
    const [away = 0, other = 0] = stage.others;
    const { session } = stage.order(away);
    stage.sim.partition([[away]]);
    for (let n = 0; n < 8; n++) {
      stage.send(other);
      stage.sim.run(stage.sim.now + 60);
    }
    stage.sim.heal();
    stage.sim.run(stage.sim.now + 1_000);
    expect(stage.count).toMatchObject({ restored: 1, ejected: 1, expired: 0 });
    expect(stage.order(away)).toMatchObject({ membership: "inside", isMember: true, session, wait: 2 });
    stage.send(away);
    stage.sim.run(stage.sim.now + 100);
    expect(said(stage, away)).toEqual([`${away}.1`]);
    expect(said(stage, other)).toHaveLength(9);
    expectSound(stage);
  });
});

describe("multicast through the log, under any faults", () => {
  /** Counts events that occurred in any of the runs. The properties are meaningful only if they occurred. */
  function search(numRuns: number, nodes: number, acts: number) {
    const met = { ejected: 0, restored: 0, expired: 0, waited: 0, views: 0, deliveries: 0 };
    const run = (given: Fate): void => {
      const stage = endure(given);
      const all = range(0, given.nodes - 1);
      expectSound(stage);
      for (const node of all) {
        expect(stage.state(node).multicast.order).toMatchObject({ membership: "inside", isMember: true, members: all });
        expect(
          said(stage, node)
            .slice(-given.nodes)
            .map((name) => Number.parseInt(name, 10))
            .toSorted((a, b) => a - b),
        ).toEqual(all);
      }
      for (const what of ["ejected", "restored", "expired", "waited"] as const) met[what] += stage.count[what];
      for (const { log } of stage.records)
        for (const entry of log) {
          if ("installed" in entry) met.views += 1;
          if ("delivered" in entry) met.deliveries += 1;
        }
    };
    fc.assert(fc.property(fate(nodes, acts), run), { numRuns, seed: 7 });
    return met;
  }

  const title =
    "one causal order, the same messages in each view, none of departed senders, and finally one view with all nodes";
  it(title, () => {
    const met = search(10, 4, 40);
    for (const count of Object.values(met)) expect(count).toBeGreaterThan(0);
  });
  it(`${title}: longer`, { tags: ["larger"] }, () => {
    const met = search(20, 5, 80);
    for (const count of Object.values(met)) expect(count).toBeGreaterThan(10);
  });
});

// Explores the multicast through a log, with sessions, replicas and log: every run of two and of three members within
// bounds. The bounds cut runs off, so the verdict is never `holds`. The tests check that no run violates a property,
// record the number of states, and check that members enter, deliver, and are ejected.

const DELIVERED = ["multicast.installed", "workload.passed", "multicast.delivered"];

type Bounds = Omit<Experiment, "protocol" | "variant">;

function isSound(bounds: Bounds, states: number, events = DELIVERED): void {
  const answer = explore({ protocol: "log-multicast", variant: "bounded", ...bounds });
  expect([answer.verdict, answer.property, answer.ended, answer.states]).toEqual(["unknown", null, null, states]);
  const checked = answer.checked.map(({ name }) => name.replace(/^\w+: /, ""));
  for (const name of ["C6 total order", "C5 happened-before order", "virtual synchrony", "integrity", "log matching"])
    expect(checked).toContain(name);
  expect(Object.keys(answer.reach.events)).toEqual(expect.arrayContaining([...events]));
}

describe("multicast through a log, every run within bounds", () => {
  it("two members send, and one timer expires at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 1 }, 584);
  });

  it("the same, and any one member crashes at any time", () => {
    isSound({ nodes: 2, maxTimeouts: 1, crashes: 1 }, 1_688);
  });

  it("two members, and any two timers: sessions expire", {
    tags: ["long"],
  }, () => {
    isSound({ nodes: 2, maxTimeouts: 2 }, 37_900, [...DELIVERED, "session.lost"]);
  });

  it("two members, one of them crashes and recovers", { tags: ["long"] }, () => {
    isSound({ nodes: 2, maxTimeouts: 1, crashes: 1, recoveries: 1 }, 28_992);
  });

  const three: Bounds = { nodes: 3, send: [0], begin: "together", maxTimeouts: 1 };
  it("three members, one sends: one timer, five messages in flight", {
    tags: ["larger"],
  }, () => {
    isSound({ ...three, maxInFlight: 5 }, 139_361);
  });

  it("the same with four messages, and any one member crashes at any time", { tags: ["larger"] }, () => {
    isSound({ ...three, maxInFlight: 4, crashes: 1 }, 81_079);
  });
});
