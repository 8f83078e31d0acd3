import { describe, expect, it } from "vitest";
import { raftStage } from "../../../../test/protocols/raft-stage.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Effect, type Stimulus, step } from "../../../core/step.ts";
import type { RaftOptions } from "./options.ts";
import { type Raft, raft } from "./raft.ts";

const SIZES = [3, 4, 5, 7, 9];

describe("raft: stories", () => {
  it("an election: the first node to time out requests pre-votes, then votes, and appends a no-op", async () => {
    const { sim, story } = raftStage({ nodes: 3 });
    sim.run(480);
    expect(story).toContain("   458.9  node 1  emits led leader 1 term 1");
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/raft-election.txt");
  });

  it("an entry: the leader commits after one round trip, and followers learn that from the next heartbeat", async () => {
    const { sim, story, settle, propose } = raftStage({ nodes: 3 });
    settle();
    story.length = 0;
    propose(1, "add 1");
    sim.run(sim.now + 80);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/raft-entry.txt");
  });

  it("fast back-up: a leader skips a whole term of entries that only one follower has", async () => {
    const { sim, story, settle, propose, leader, logs } = raftStage({ nodes: 4 });
    settle();
    const cutOff = leader();
    sim.partition([[cutOff]]);
    for (const operation of ["a", "b", "c", "d"]) propose(cutOff, operation);
    sim.run(sim.now + 1_500);
    propose(leader(), "e");
    sim.run(sim.now + 100);
    // The next leader starts sending at the end of its log. At that index the other log has entries of term 1.
    sim.crash(leader());
    sim.heal();
    sim.run(sim.now + 800);
    const lines = story.filter((line) => / node \d {2}(sends|receives) (appendEntries|rejected|appended) /.test(line));
    expect(new Set(logs())).toEqual(new Set(["1:noop 2:noop 2:e 3:noop"]));
    story.splice(0, story.length, ...lines.filter((line) => line.includes("term 3")));
    expect(story.filter((line) => line.includes("sends rejected"))).toHaveLength(1);
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/raft-fast-back-up.txt");
  });
});

describe("raft: costs", () => {
  it.each(SIZES)("N = %i: an election costs 2(N − 1), its pre-vote 2(N − 1), and N − 1 first entries", (nodes) => {
    const { sim, leader } = raftStage({ nodes, alone: 0 });
    sim.run(400);
    expect(leader()).toBe(0);
    const others = nodes - 1;
    expect(sim.messages.byType).toEqual({
      requestPreVote: others,
      preVote: others,
      requestVote: others,
      vote: others,
      appendEntries: others,
      appended: others,
    });
    expect(sim.messages.total).toBe(raft().costs[1]?.messages(nodes));
  });

  it.each(SIZES)("N = %i: an election without a pre-vote costs 2(N − 1)", (nodes) => {
    const { sim } = raftStage({ nodes, alone: 0, options: { preVote: false } });
    sim.run(400);
    expect(sim.messages.byType).toMatchObject({ requestVote: nodes - 1, vote: nodes - 1 });
    expect(sim.messages.byType.requestPreVote).toBeUndefined();
  });

  it.each(SIZES)("N = %i: an entry costs 2(N − 1), and so does a batch of entries", (nodes) => {
    const { settle, propose, costOf, leader } = raftStage({ nodes, options: { maxInFlight: 1 } });
    settle();
    const others = nodes - 1;
    const one = costOf(() => propose(leader(), "x"), 30);
    expect(one).toEqual({ appendEntries: others, appended: others });
    // The first entry is sent alone. Entries proposed while it is in flight share a batch.
    const ten = costOf(() => {
      for (let at = 0; at < 10; at++) propose(leader(), `x${at}`);
    }, 45);
    expect(ten).toEqual({ appendEntries: 2 * others, appended: 2 * others });
    expect(2 * others).toBe(raft().costs[0]?.messages(nodes));
  });

  it.each(SIZES)("N = %i: a read at the leader costs 2(N − 1) without an entry, and nothing with a lease", (nodes) => {
    for (const leaseReads of [false, true]) {
      const { sim, settle, costOf, leader } = raftStage({ nodes, options: { leaseReads } });
      settle();
      const others = nodes - 1;
      const read = costOf(() => sim.command(leader(), { type: "read", read: 1 }), 30);
      expect(read).toEqual(leaseReads ? {} : { heartbeat: others, heartbeatAnswered: others });
      expect(sim.events(leader())).toContainEqual({ type: "readable", read: 1 });
    }
  });
});

type Step = { state: Raft["state"]; effects: Effect<Raft>[] };
const node = { self: 1, peers: [0, 2] };
const fresh = (options: Partial<RaftOptions> = {}) => raft(options).init(node.self, node.peers);
const take = (state: Raft["state"], stimulus: Stimulus<Raft>, options: Partial<RaftOptions> = {}): Step =>
  step(raft(options), node, state, stimulus);
const receive = (state: Raft["state"], from: NodeId, message: Raft["message"]): Step =>
  take(state, { kind: "receive", from, message });
const kinds = ({ effects }: Step): string[] => effects.map(({ kind }) => kind);

describe("raft: the journal", () => {
  const noop = { type: "noop", term: 1 } as const;

  it("journals a vote, a term and entries before it answers", () => {
    const vote = { type: "requestVote", term: 1, lastIndex: 0, lastTerm: 0, isTransfer: false } as const;
    const voted = receive(fresh(), 0, vote);
    expect(kinds(voted).filter((kind) => kind === "persist" || kind === "send")).toEqual(["persist", "send"]);
    expect(voted.effects).toContainEqual({ kind: "persist", record: { type: "voted", term: 1, votedFor: 0 } });
    const entries = { type: "appendEntries", term: 1, previousIndex: 0, previousTerm: 0, entries: [noop] } as const;
    const appended = receive(voted.state, 0, { ...entries, entries: [noop], commitIndex: 0 });
    expect(kinds(appended).filter((kind) => kind === "persist" || kind === "send")).toEqual(["persist", "send"]);
  });

  it("a candidate journals its term and vote before it asks; a leader sends entries before it journals them", () => {
    const standing = take(fresh(), { kind: "timeout", timer: "election" }, { preVote: false });
    expect(kinds(standing)).toEqual(["persist", "setTimer", "send", "send"]);
    const leading = receive(standing.state, 0, { type: "vote", term: 1, isGranted: true });
    expect(kinds(leading).filter((kind) => kind === "persist" || kind === "send")).toEqual(["send", "send", "persist"]);
  });

  it("a single voter commits an entry once it is journaled", () => {
    const alone = { self: 0, peers: [] };
    const options = { preVote: false };
    const { state, effects } = step(raft(options), alone, raft(options).init(0, []), {
      kind: "timeout",
      timer: "election",
    });
    expect([state.role.is, state.commitIndex]).toEqual(["leader", 1]);
    expect(effects.filter(({ kind }) => kind === "send")).toEqual([]);
  });

  it("a node does not change when it answers a pre-vote request", () => {
    for (const [term, lastIndex] of [
      [1, 0],
      [9, 4],
      [0, 0],
    ] as const) {
      const before = fresh();
      const asked = receive(before, 2, { type: "requestPreVote", term, lastIndex, lastTerm: 0 });
      expect(asked.state).toEqual(before);
      expect(kinds(asked)).toEqual(["send"]);
    }
  });
});
