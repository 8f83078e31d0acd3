/**
 * Checks the rules for terms, and the promise that a node gives its leader by answering: which messages end it, and
 * which do not.
 */

import { describe, expect, it } from "vitest";
import { raftStage } from "../../../../test/protocols/raft-stage.ts";
import { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Effect, type Stimulus, step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import type { RaftOptions } from "./options.ts";
import { type Raft, raft } from "./raft.ts";

const node = { self: 1, peers: [0, 2] };
const defaults = { leaseReads: true };

class Follower {
  #state: Raft["state"];
  readonly #protocol;

  constructor(options: Partial<RaftOptions> = defaults) {
    this.#protocol = raft(options);
    this.#state = this.#protocol.init(node.self, node.peers);
  }

  get state(): Raft["state"] {
    return this.#state;
  }

  take(stimulus: Stimulus<Raft>): Effect<Raft>[] {
    const { state, effects } = step(this.#protocol, node, this.#state, stimulus);
    this.#state = state;
    return effects;
  }

  receive(from: NodeId, message: Raft["message"]): Raft["message"][] {
    return this.take({ kind: "receive", from, message }).flatMap((effect) =>
      effect.kind === "send" ? [effect.message] : [],
    );
  }

  expire(timer: Raft["timer"]): void {
    this.take({ kind: "timeout", timer });
  }
}

const heartbeat = (term: number): Raft["message"] => ({ type: "heartbeat", term, round: 1, commitIndex: 0 });
const requestVote = (term: number, isTransfer = false): Raft["message"] => ({
  type: "requestVote",
  term,
  lastIndex: 9,
  lastTerm: term - 1,
  isTransfer,
});
const refused = (term: number) => [{ type: "vote", term, isGranted: false }];
const granted = (term: number) => [{ type: "vote", term, isGranted: true }];

const ofALaterTerm: Raft["message"][] = [
  { type: "preVote", term: 2, isGranted: false },
  { type: "vote", term: 2, isGranted: false },
  { type: "vote", term: 2, isGranted: true },
  { type: "appended", term: 2, matchIndex: 0 },
  { type: "rejected", term: 2, previousIndex: 0, conflictTerm: null, conflictIndex: 1 },
  { type: "heartbeatAnswered", term: 2, round: 1 },
  { type: "chunkReceived", term: 2, index: 1, received: 0 },
  { type: "timeoutNow", term: 2 },
];

describe("raft: the promise to a leader, by answering its heartbeat", () => {
  it.each(ofALaterTerm)("survives a later term in a message $type", (message) => {
    const follower = new Follower();
    follower.receive(0, heartbeat(1));
    follower.receive(2, message);
    expect(follower.state.term).toBe(2);
    expect(follower.receive(2, requestVote(3))).toEqual(refused(2));
    expect(follower.receive(2, { type: "requestPreVote", term: 3, lastIndex: 9, lastTerm: 2 })).toEqual([
      { type: "preVote", term: 2, isGranted: false },
    ]);
    follower.expire("election"); // The promise expires after the minimum election timeout.
    expect(follower.receive(2, requestVote(3))).toEqual(granted(3));
  });

  it("survives a later term after a restart, when the node does not remember whether it answered", () => {
    const follower = new Follower();
    follower.take({ kind: "replay", record: { type: "voted", term: 1, votedFor: null } });
    follower.take({ kind: "start" });
    follower.receive(2, { type: "preVote", term: 2, isGranted: false });
    expect(follower.receive(2, requestVote(3))).toEqual(refused(2));
    follower.expire("election");
    expect(follower.receive(2, requestVote(3))).toEqual(granted(3));
  });

  it("survives a snapshot and a change of members from the leader", () => {
    const follower = new Follower();
    const configuration = { voters: [0, 1], learners: [2], outgoing: null };
    const chunk = { index: 5, lastTerm: 1, configuration, part: 0, chunk: Chunk.of("s"), isLast: true };
    follower.receive(0, { type: "installSnapshot", term: 1, ...chunk });
    expect(follower.state.snapshot.index).toBe(5);
    follower.receive(2, { type: "preVote", term: 2, isGranted: false });
    expect(follower.receive(2, requestVote(3))).toEqual(refused(2));
  });

  it("ends when its leader asks for an election, since that leader gave up its lease", () => {
    const follower = new Follower();
    follower.receive(0, heartbeat(1));
    expect(follower.receive(2, requestVote(2, true))).toEqual(granted(2));
    expect(follower.state.role).toMatchObject({ is: "follower", hasHeard: false });
  });

  it("is not given without checkQuorum, which leases depend on", () => {
    const follower = new Follower({ checkQuorum: false });
    follower.receive(0, heartbeat(1));
    expect(follower.receive(2, requestVote(2))).toEqual(granted(2));
  });
});

describe("raft: messages of an earlier term", () => {
  it.each<[Raft["message"], Raft["message"][]]>([
    [requestVote(1), [{ type: "vote", term: 3, isGranted: false }]],
    [heartbeat(1), [{ type: "heartbeatAnswered", term: 3, round: 1 }]],
    [
      { type: "appendEntries", term: 1, previousIndex: 4, previousTerm: 1, entries: [], commitIndex: 4 },
      [{ type: "rejected", term: 3, previousIndex: 4, conflictTerm: null, conflictIndex: 0 }],
    ],
    [
      {
        type: "installSnapshot",
        term: 1,
        index: 5,
        lastTerm: 1,
        configuration: { voters: [0], learners: [], outgoing: null },
        part: 0,
        chunk: Chunk.of("s"),
        isLast: true,
      },
      [{ type: "chunkReceived", term: 3, index: 5, received: 0 }],
    ],
    [{ type: "committed", term: 1, commitIndex: 4 }, []],
    [{ type: "timeoutNow", term: 1 }, []],
    [{ type: "vote", term: 1, isGranted: true }, []],
  ])("change nothing, and the answer carries the current term: %j", (message, answers) => {
    const follower = new Follower();
    follower.receive(0, heartbeat(3));
    const before = follower.state;
    expect(follower.receive(0, message)).toEqual(answers);
    expect(follower.state).toEqual(before);
  });
});

describe("raft: the commit index of a follower", () => {
  it("does not reach entries that are not known to match the leader's log", () => {
    const follower = new Follower();
    const noop = (term: number) => ({ type: "noop", term }) as const;
    const append = { type: "appendEntries", previousIndex: 0, previousTerm: 0, commitIndex: 0 } as const;
    follower.receive(0, { ...append, term: 1, entries: [noop(1), noop(1), noop(1)] });
    const answers = follower.receive(2, { ...append, term: 2, entries: [noop(1)], commitIndex: 3 });
    expect(answers).toEqual([{ type: "appended", term: 2, matchIndex: 1 }]);
    expect(follower.state).toMatchObject({ commitIndex: 1, log: { entries: [noop(1), noop(1), noop(1)] } });
  });
});

describe("raft: a node that leads a second time", () => {
  const answers: Raft["message"][] = [
    { type: "appended", term: 1, matchIndex: 2 },
    { type: "rejected", term: 1, previousIndex: 0, conflictTerm: null, conflictIndex: 0 },
    { type: "heartbeatAnswered", term: 1, round: 1 },
    { type: "chunkReceived", term: 1, index: 1, received: 0 },
    { type: "preVote", term: 1, isGranted: false },
    { type: "vote", term: 1, isGranted: true },
  ];

  it.each(answers)("ignores an answer to its first term: %j", (answer) => {
    const leader = new Follower({ ...defaults, preVote: false });
    leader.expire("election");
    leader.receive(0, { type: "vote", term: 1, isGranted: true });
    leader.receive(0, { type: "vote", term: 2, isGranted: false });
    leader.expire("election");
    leader.receive(0, { type: "vote", term: 3, isGranted: true });
    // This begins round 1, as a read or a heartbeat in term 1 would.
    leader.take({ kind: "command", command: { type: "read", read: 1 } });
    expect(leader.state.role).toMatchObject({ is: "leader", round: 1, answered: [] });
    const before = leader.state;
    expect(leader.receive(0, answer)).toEqual([]);
    expect(leader.state).toEqual(before);
  });
});

describe("raft: a leader's lease", () => {
  // In the worst case, the leader's clock is as slow and the others' are as fast as allowed, and messages take no time.
  it.each([0, 0.05, 0.3])("ends before the promises behind it when clocks are wrong by up to %d", (drift) => {
    const options = { leaseReads: true, drift, preVote: false, minElectionMs: 300, maxElectionMs: 301 };
    const sim = simulation<Raft>({ protocol: raft(options), nodes: [0, 1, 2], seed: 1, delayMs: 0 });
    for (const each of [0, 1, 2]) sim.start(each);
    sim.run(1_000);
    const leader = [0, 1, 2].find((each) => sim.world.state(each).role.is === "leader") as NodeId;
    const others = [0, 1, 2].filter((each) => each !== leader);
    sim.clockRate(leader, 1 - drift);
    for (const each of others) sim.clockRate(each, 1 + drift);
    sim.run(2_000);
    const hasLease = () => {
      const { role } = sim.world.state(leader);
      return role.is === "leader" && role.leaseRound !== null;
    };
    const isPromised = () => {
      const roles = others.map((each) => sim.world.state(each).role);
      return roles.some((role) => role.is === "follower" && role.leader === leader && role.hasHeard);
    };
    expect([hasLease(), isPromised()]).toEqual([true, true]);
    sim.partition([[leader]]);
    while (hasLease()) {
      expect(isPromised()).toBe(true);
      sim.run(sim.now + 0.25);
    }
    sim.run(sim.now + 1_000);
    expect(others.some((each) => sim.world.state(each).role.is === "leader")).toBe(true);
    expect(sim.violations).toEqual([]);
  });

  it("is not taken from a round whose answers come after the lease of that round has expired", () => {
    const stage = raftStage({ nodes: 3, alone: 0, options: { leaseReads: true, minElectionMs: 300 } });
    const { sim } = stage;
    stage.settle();
    for (const other of [1, 2])
      for (const [from, to] of [
        [0, other],
        [other, 0],
      ] as const)
        sim.setLink(from, to, { delay: 145 }); // A round trip takes longer than a lease, which is 271 ms.
    sim.run(sim.now + 2_000);
    const leases: unknown[] = [];
    for (let at = 0; at < 1_000; at++) {
      sim.run(sim.now + 1);
      const { role } = sim.world.state(0);
      if (role.is === "leader") leases.push(role.leaseRound);
    }
    expect(new Set(leases)).toEqual(new Set([null]));
  });

  it("is given up for the rest of the term by a leadership transfer, even if the transfer fails", () => {
    const protocol = raft({ leaseReads: true, preVote: false });
    const leader = { self: 0, peers: [1, 2] };
    let state = protocol.init(0, [1, 2]);
    const take = (stimulus: Stimulus<Raft>) => {
      state = step(protocol, leader, state, stimulus).state;
    };
    const receive = (from: NodeId, message: Raft["message"]) => take({ kind: "receive", from, message });
    take({ kind: "timeout", timer: "election" });
    receive(1, { type: "vote", term: 1, isGranted: true });
    take({ kind: "timeout", timer: "heartbeat" });
    receive(1, { type: "heartbeatAnswered", term: 1, round: 1 });
    expect(state.role).toMatchObject({ leaseRound: 1 });
    take({ kind: "command", command: { type: "transfer", to: 1 } });
    expect(state.role).toMatchObject({ leaseRound: null });
    take({ kind: "timeout", timer: "transfer" });
    take({ kind: "timeout", timer: "heartbeat" });
    receive(1, { type: "heartbeatAnswered", term: 1, round: 2 });
    expect(state.role).toMatchObject({ is: "leader", round: 2, leaseRound: null });
  });

  it("ends with the promises behind it, even if a membership change completes a round that no quorum had answered", () => {
    const options = { leaseReads: true, learners: [2] };
    const protocol = raft({ ...options, preVote: false });
    const leader = { self: 0, peers: [1, 2] };
    let state = protocol.init(0, [1, 2]);
    const take = (stimulus: Stimulus<Raft>) => {
      state = step(protocol, leader, state, stimulus).state;
    };
    const receive = (from: NodeId, message: Raft["message"]) => take({ kind: "receive", from, message });
    take({ kind: "timeout", timer: "election" });
    receive(1, { type: "vote", term: 1, isGranted: true });
    receive(1, { type: "appended", term: 1, matchIndex: 1 });
    take({ kind: "timeout", timer: "heartbeat" });
    receive(1, { type: "heartbeatAnswered", term: 1, round: 1 });
    expect(state.role).toMatchObject({ leaseRound: 1 });
    take({ kind: "timeout", timer: "heartbeat" }); // Round 2 begins, and only the leader itself answers it.
    take({ kind: "command", command: { type: "reconfigure", voters: [0], learners: [1, 2] } });
    receive(1, { type: "appended", term: 1, matchIndex: 3 });
    receive(1, { type: "appended", term: 1, matchIndex: 2 });
    expect(state.configuration).toMatchObject({ voters: [0], outgoing: null });
    take({ kind: "timeout", timer: "heartbeat" });
    expect(state.role).toMatchObject({ round: 3, leaseRound: 2 });
    take({ kind: "timeout", timer: "leaseEven" });
    expect(state.role).toMatchObject({ leaseRound: null });
  });
});
