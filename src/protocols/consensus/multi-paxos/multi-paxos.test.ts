import { describe, expect, it } from "vitest";
import { range } from "../../../../test/protocols/sizes.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { type Stimulus, step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import type { Command } from "../family/replicated-log.ts";
import { snapshotOf } from "../family/replicated-log.ts";
import { mayAnswerByLease } from "./leadership.ts";
import { type MultiPaxos, type MultiPaxosOptions, multiPaxos } from "./multi-paxos.ts";
import type { Ballot, Proposal } from "./vocabulary.ts";

const propose = (sequence: number, client = 0): Extract<MultiPaxos["command"], { type: "propose" }> => ({
  type: "propose",
  command: { client, sequence, operation: `append ${client}.${sequence}` },
});

/** Starts the log alone, with idle nodes. No election takes place before a proposal. */
function stage(nodes: number, options: Partial<MultiPaxosOptions> = {}) {
  const lines: string[] = [];
  const sim = simulation<MultiPaxos>({
    protocol: multiPaxos(options),
    nodes: range(0, nodes - 1),
    seed: 1,
    delayMs: 10,
    trace: (entry) => lines.push(logLine(entry)),
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  lines.length = 0;
  const decided = (node: NodeId) =>
    sim.events(node).flatMap((event) => (event.type === "decided" ? [event.command.operation] : []));
  return { sim, lines, decided };
}

/** Returns the lines until this many nodes have decided a slot. */
function until(lines: readonly string[], slot: string, times: number): readonly string[] {
  let left = times;
  const last = lines.findIndex((line) => line.includes(`emits decided ${slot}`) && --left === 0);
  return lines.slice(0, last + 1);
}

/** Makes node 0 lead, with the first command decided. */
function led(nodes: number, options: Partial<MultiPaxosOptions> = {}) {
  const staged = stage(nodes, options);
  staged.sim.command(0, propose(1));
  staged.sim.run(95);
  expect(staged.sim.world.state(0)).toMatchObject({ role: { is: "leader" }, decided: 1 });
  staged.lines.length = 0;
  return staged;
}

describe("multi-paxos: costs", () => {
  it.each([3, 4, 5, 7, 9])("N = %i: 2(N − 1) messages once for phase 1, then 2(N − 1) per command", (nodes) => {
    const others = nodes - 1;
    const { sim, decided } = stage(nodes, { announces: false });
    sim.command(0, propose(1));
    sim.run(95); // This is before the second heartbeat.
    const heartbeats = { heartbeat: others, confirm: others };
    const phaseOne = { prepare: others, promise: others };
    expect(sim.messages.byType).toEqual({ ...phaseOne, ...heartbeats, accept: others, accepted: others });
    for (const sequence of range(2, 11)) sim.command(0, propose(sequence));
    sim.run(115);
    expect(decided(0)).toHaveLength(11); // This is two delays later.
    expect(sim.messages.byType).toMatchObject({ ...phaseOne, accept: 11 * others, accepted: 11 * others });
    expect(multiPaxos({ announces: false }).costs[0]?.messages(nodes)).toBe(2 * others);
  });

  it.each([3, 4, 5, 7, 9])("N = %i: N − 1 notices inform the others, one delay later", (nodes) => {
    const { sim, decided } = led(nodes);
    sim.command(0, propose(2));
    sim.run(115);
    expect([decided(0).length, decided(nodes - 1).length]).toEqual([2, 1]);
    sim.run(125);
    expect(decided(nodes - 1)).toEqual(["append 0.1", "append 0.2"]);
    const each = nodes - 1;
    expect(sim.messages.byType).toMatchObject({ accept: 2 * each, accepted: 2 * each, decided: 2 * each });
    expect(multiPaxos().costs[0]?.messages(nodes)).toBe(3 * each);
  });
});

describe("multi-paxos: stories", () => {
  it("one command after another under one leader", async () => {
    const { sim, lines } = stage(3);
    sim.command(0, propose(1));
    sim.run(60);
    sim.command(0, propose(2));
    sim.run(95);
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("stories/steady-state.txt");
  });
});

describe("multi-paxos: crashes, snapshots, members", () => {
  it("the next leader closes a gap in the log of a crashed one with a no-op", async () => {
    const { sim, lines, decided } = led(3);
    for (const node of [1, 2]) sim.cut(0, node);
    sim.command(0, propose(2)); // No other node receives slot 2 …
    sim.mend(0, 1);
    sim.command(0, propose(3)); // … and only node 1 receives slot 3.
    sim.run(106);
    expect(sim.world.state(1).log[3]?.value).toMatchObject({ type: "command" });
    sim.crash(0);
    sim.heal();
    sim.run(2_000);
    const [leader] = sim.world.alive.filter((node) => sim.world.state(node).role.is === "leader");
    expect(leader).toBeDefined();
    for (const node of [1, 2]) {
      expect(decided(node)).toEqual(["append 0.1", "append 0.3"]);
      expect(sim.world.state(node).log[2]?.value).toEqual({ type: "noop" });
    }
    expect(sim.verdict()).toEqual([]);
    await expect(`${until(lines, "index 3", 2).join("\n")}\n`).toMatchFileSnapshot("stories/gap-filled.txt");
  });

  it("a disconnected node catches up with a snapshot and the slots after it", async () => {
    const { sim, lines, decided } = led(3, { keep: 0 });
    sim.crash(2);
    for (const sequence of range(2, 6)) sim.command(0, propose(sequence));
    sim.run(130);
    sim.command(0, { type: "compact", index: 5, snapshot: snapshotOf("five") });
    sim.command(1, { type: "compact", index: 5, snapshot: snapshotOf("five") });
    expect(Object.keys(sim.world.state(0).log)).toEqual(["6"]);
    lines.length = 0;
    sim.start(2);
    sim.run(700);
    expect(sim.events(2)).toContainEqual({ type: "installed", index: 5, snapshot: snapshotOf("five") });
    expect(sim.events(2)).toContainEqual({ type: "reconfigured", voters: [0, 1, 2], learners: [] });
    // Node 2 had accepted the first command before it crashed.
    expect(decided(2)).toEqual(["append 0.1", "append 0.6"]);
    await expect(`${until(lines, "index 6", 1).join("\n")}\n`).toMatchFileSnapshot("stories/catch-up.txt");
    sim.crash(2);
    sim.start(2);
    expect(sim.events(2)).toContainEqual({ type: "installed", index: 5, snapshot: snapshotOf("five") });
  });

  it("a long snapshot is sent in fragments, which never split a surrogate pair", () => {
    const { sim } = led(3, { keep: 0 });
    const snapshot = "x".repeat(65_535) + "😀".repeat(80_000);
    sim.crash(2);
    sim.command(0, propose(2));
    sim.run(130);
    sim.command(0, { type: "compact", index: 2, snapshot: snapshotOf(snapshot) });
    sim.start(2);
    sim.run(1_000);
    expect(sim.messages.byType.chunk).toBe(4);
    expect(sim.world.state(2).snapshot?.text === snapshot).toBe(true);
    sim.crash(0);
    sim.start(0);
    expect(sim.world.state(0).snapshot?.text === snapshot).toBe(true);
  });

  it("members take effect a window later, and a leader that is no longer one leads until they know", async () => {
    const { sim, lines, decided } = led(5, { window: 2, voters: [0, 1, 2], learners: [3, 4] });
    sim.command(0, { type: "reconfigure", voters: [2, 3, 4], learners: [] });
    sim.run(110);
    expect(sim.world.state(0).configurations.map(({ from }) => from)).toEqual([1]);
    sim.run(200);
    expect(sim.world.state(0).configurations.at(-1)).toEqual({ from: 4, voters: [2, 3, 4], learners: [] });
    const reconfigured = { type: "reconfigured", voters: [2, 3, 4], learners: [] };
    expect(sim.events(0)).toContainEqual(reconfigured);
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("stories/members-change.txt");
    sim.run(3_000);
    for (const node of [2, 3, 4]) expect(sim.events(node)).toContainEqual(reconfigured);
    for (const node of [0, 1]) sim.crash(node);
    sim.command(3, propose(1, 3));
    sim.run(4_000);
    sim.command(3, propose(1, 3));
    sim.run(6_000);
    expect(decided(4)).toContain("append 3.1");
    expect(sim.verdict()).toEqual([]);
  });

  it("a node that missed a membership change learns it from the snapshot", () => {
    const { sim } = led(5, { window: 2, keep: 0 });
    sim.crash(4);
    sim.command(0, { type: "reconfigure", voters: [0, 1, 2], learners: [3, 4] });
    sim.run(400);
    const index = sim.world.state(0).decided;
    for (const node of [0, 1, 2, 3]) sim.command(node, { type: "compact", index, snapshot: snapshotOf("s") });
    sim.start(4);
    sim.run(2_000);
    expect(sim.events(4)).toContainEqual({ type: "installed", index, snapshot: snapshotOf("s") });
    expect(sim.events(4)).toContainEqual({ type: "reconfigured", voters: [0, 1, 2], learners: [3, 4] });
    expect(sim.violations).toEqual([]);
  });

  it("a node decides no slots after a gap", () => {
    const node = { self: 1, peers: [0, 2] };
    const protocol = multiPaxos();
    const proposal = { ballot: { round: 1, node: 0 }, value: { type: "noop" } } as const;
    const entries = [2, 3].map((slot) => ({ slot, ...proposal }));
    const learn = { kind: "receive", from: 0, message: { type: "learn", decided: 3, entries } } as const;
    const { state } = step(protocol, node, protocol.init(1, node.peers), learn);
    expect(state).toMatchObject({ decided: 0, log: {} });
  });

  it("a leader elected by old members proposes nothing to new ones before a majority of these has promised", () => {
    const command = (client: NodeId) => propose(1, client).command;
    const whole = multiPaxos({ voters: [0, 1], learners: [2, 3], window: 2 });
    const first: Ballot = { round: 1, node: 0 };
    const later: Ballot = { round: 2, node: 2 };
    const log: Record<number, Proposal> = {
      1: { ballot: first, value: { type: "members", voters: [2, 3], learners: [0, 1] } },
      2: { ballot: first, value: { type: "noop" } },
    };
    const third: Proposal = { ballot: later, value: { type: "command", command: command(2) } };
    const protocol: typeof whole = {
      ...whole,
      init(self, peers) {
        const before = whole.init(self, peers);
        const configurations = [...before.configurations, { from: 3, voters: [2, 3], learners: [0, 1] }];
        const known = { ...before, round: 2, configurations };
        if (self <= 1) return { ...known, promised: first, log, decided: 1 };
        return { ...known, promised: later, log: { ...log, 3: third }, decided: 3 };
      },
    };
    const sim = simulation<MultiPaxos>({ protocol, nodes: range(0, 3), seed: 1, delayMs: 10 });
    for (const node of range(0, 3)) sim.wake(node);
    sim.partition([[0, 1]]);
    sim.command(0, propose(1, 0));
    sim.run(200);
    expect(sim.world.state(0)).toMatchObject({ role: { is: "leader", next: 3 }, decided: 2, waiting: [command(0)] });
    sim.heal();
    sim.run(5_000);
    expect(sim.violations).toEqual([]);
    for (const node of range(0, 3)) expect(sim.world.state(node).log[3]?.value).toEqual(third.value);
  });

  it("a leader elected by old members catches up before it accepts promises of new ones that decided more", () => {
    const node = { self: 1, peers: [0, 2] };
    const protocol = multiPaxos({ voters: [1], window: 2 });
    let state = protocol.init(1, node.peers);
    const take = (stimulus: Stimulus<MultiPaxos>) => {
      const taken = step(protocol, node, state, stimulus);
      state = taken.state;
      return taken.effects.flatMap((effect) => (effect.kind === "send" ? [effect.message.type] : []));
    };
    take({ kind: "command", command: propose(1, 1) });
    expect(take({ kind: "command", command: { type: "reconfigure", voters: [0, 2], learners: [] } })).toContain(
      "prepare",
    );
    expect(state).toMatchObject({ role: { is: "leader", next: 4 }, decided: 3 });
    take({ kind: "command", command: propose(2, 1) });
    const promise: MultiPaxos["message"] = {
      type: "promise",
      ballot: state.promised,
      decided: 38,
      accepted: [],
      rest: null,
    };
    expect(take({ kind: "receive", from: 0, message: promise })).toEqual(["catchUp"]);
    expect(state.role.is).toBe("follower");
  });

  it("a restarted node reports the decisions in its journal before it handles requests, even if it could decide alone", () => {
    const node = { self: 1, peers: [0, 2] };
    const protocol = multiPaxos({ voters: [1] });
    const ballot = { round: 1, node: 1 };
    const { command } = propose(1, 1) as { command: Command };
    const record = { type: "accepted", slot: 1, ballot, value: { type: "command", command }, decided: 1 } as const;
    const restored = step(protocol, node, protocol.init(1, node.peers), { kind: "replay", record }).state;
    const asked = step(protocol, node, restored, { kind: "command", command: propose(2, 1) });
    expect(asked.effects).toEqual([]);
    const { effects } = step(protocol, node, asked.state, { kind: "start" });
    expect(effects[0]).toEqual({ kind: "emit", event: { type: "decided", index: 1, command } });
  });
});

describe("multi-paxos: reads and leases", () => {
  it("many reads cost one round of heartbeats, and no slot", () => {
    const { sim } = led(5);
    const before = sim.messages.byType;
    const [heartbeats = 0, accepts = 0] = [before.heartbeat, before.accept];
    for (const read of range(1, 10)) sim.command(0, { type: "read", read });
    sim.run(136);
    expect(sim.events(0).filter(({ type }) => type === "readable")).toHaveLength(10);
    expect(sim.messages.byType).toMatchObject({ heartbeat: heartbeats + 4 * 2, accept: accepts });
  });

  it("many reads with a lease cost nothing", () => {
    const { sim } = led(5, { reads: "lease" });
    const before = sim.messages.total;
    sim.command(0, { type: "read", read: 1 });
    expect(sim.events(0)).toContainEqual({ type: "readable", read: 1 });
    expect(sim.messages.total).toBe(before);
  });

  it("a follower forwards reads to the leader", () => {
    const { sim } = led(3);
    sim.command(2, { type: "read", read: 7 });
    sim.run(150);
    expect(sim.events(2)).toContainEqual({ type: "readable", read: 7 });
    expect(sim.messages.byType).toMatchObject({ forwardRead: 1, readAt: 1 });
  });

  it("a leader that is cut off answers no read, and steps down", () => {
    const { sim } = led(3);
    sim.partition([[0], [1, 2]]);
    sim.command(0, { type: "read", read: 1 });
    sim.run(2_000);
    expect(sim.events(0).some(({ type }) => type === "readable")).toBe(false);
    expect(sim.world.state(0).role.is).not.toBe("leader");
    sim.heal();
    sim.run(4_000);
    expect(range(0, 2).filter((node) => sim.world.state(node).role.is === "leader")).toHaveLength(1);
  });

  const slowLeader = (rate: number) => {
    const { sim } = led(3, { reads: "lease" });
    sim.clockRate(0, rate);
    sim.partition([[0], [1, 2]]);
    sim.run(3_000);
    return sim.violations.map(({ property }) => property);
  };

  it("a leader that is paused for longer than its lease serves nothing with it afterwards", () => {
    const { sim } = led(3, { reads: "lease" });
    sim.pause(0);
    sim.run(2_000);
    expect(sim.violations.map(({ property }) => property)).toEqual(["one lease at a time"]);
    sim.command(0, { type: "read", read: 1 });
    sim.resume(0); // Node 0's timer expired before the read arrived, so node 0 steps down first.
    sim.run(2_001);
    expect(sim.world.state(0).role.is).toBe("follower");
    expect(sim.events(0).some(({ type }) => type === "readable")).toBe(false);
  });

  // In the worst case, the leader's clock is as slow and the others' are as fast as allowed, and messages take no time.
  it.each([0, 0.05, 0.3])("a lease ends before the promises behind it when clocks are wrong by up to %d", (drift) => {
    const protocol = multiPaxos({ reads: "lease", drift });
    const sim = simulation<MultiPaxos>({ protocol, nodes: range(0, 2), seed: 1, delayMs: 0 });
    for (const node of range(0, 2)) sim.wake(node);
    sim.command(0, propose(1));
    sim.clockRate(0, 1 - drift);
    for (const node of [1, 2]) sim.clockRate(node, 1 + drift);
    sim.run(2_000);
    const hasLease = () => mayAnswerByLease(sim.world.state(0));
    const isPromised = () => [1, 2].some((node) => sim.world.state(node).isBound);
    expect([hasLease(), isPromised()]).toEqual([true, true]);
    sim.partition([[0]]);
    while (hasLease()) {
      expect(isPromised()).toBe(true);
      sim.run(sim.now + 0.25);
    }
    expect(sim.violations).toEqual([]);
  });

  it("two leases overlap only if a clock is off by more than the margin", () => {
    expect(slowLeader(0.95)).toEqual([]);
    expect(slowLeader(0.2)).toEqual(["one lease at a time"]);
  });
});

describe("multi-paxos: ballots", () => {
  it("a candidate with the lower ballot of a round moves to a higher round", () => {
    const node = { self: 0, peers: [1, 2] };
    const protocol = multiPaxos();
    let state = protocol.init(0, node.peers);
    const take = (stimulus: Stimulus<MultiPaxos>) => {
      const taken = step(protocol, node, state, stimulus);
      state = taken.state;
      return taken.effects.flatMap((effect) => (effect.kind === "send" ? [effect.message] : []));
    };
    const [first] = take({ kind: "command", command: propose(1) });
    if (first?.type !== "prepare") throw new Error("expected it to become a candidate");
    const promised = { round: first.ballot.round, node: 1 };
    const nack = { type: "nack", ballot: first.ballot, promised, decided: 0, leader: null } as const;
    expect(take({ kind: "receive", from: 2, message: nack })).toEqual([]);
    const [second] = take({ kind: "timeout", timer: "election" });
    expect(second?.type === "prepare" && second.ballot.round > promised.round).toBe(true);
  });
});

describe("multi-paxos: leadership transfer", () => {
  const leaders = (sim: ReturnType<typeof stage>["sim"]) =>
    sim.world.alive.filter((node) => sim.world.state(node).role.is === "leader");

  it("the successor leads two round trips later, no matter which node is asked, and there is one lease at a time", () => {
    const { sim, decided } = led(5, { reads: "lease" });
    sim.command(1, { type: "transfer", to: 3 });
    sim.command(1, propose(1, 1)); // The request waits at this node for a leader.
    sim.run(145); // Node 1 has forwarded the request, and the successor has requested and received promises.
    expect(leaders(sim)).toEqual([3]);
    sim.run(400);
    expect(sim.messages.byType).toMatchObject({ forwardTransfer: 1, takeOver: 1, prepare: 2 * 4 });
    expect(decided(3)).toEqual(["append 0.1", "append 1.1"]);
    expect(sim.violations).toEqual([]);
  });

  it("only a voter can be the successor, and if it is down the leader is elected again", () => {
    const { sim, decided } = led(4, { voters: [0, 1, 2], learners: [3] });
    for (const to of [0, 3, 9]) sim.command(0, { type: "transfer", to });
    expect(leaders(sim)).toEqual([0]);
    sim.crash(2);
    sim.command(0, { type: "transfer", to: 2 });
    expect(leaders(sim)).toEqual([]);
    sim.command(1, propose(1, 1));
    sim.run(2_000);
    expect([leaders(sim).length, decided(1).at(-1)]).toEqual([1, "append 1.1"]);
  });

  it("a node bound to a different leader than the one that stepped down promises nothing", () => {
    const node = { self: 1, peers: [0, 2] };
    const protocol = multiPaxos();
    let state = protocol.init(1, node.peers);
    const take = (from: NodeId, message: MultiPaxos["message"]) => {
      const taken = step(protocol, node, state, { kind: "receive", from, message });
      state = taken.state;
      return taken.effects.flatMap((effect) => (effect.kind === "send" ? [effect.message.type] : []));
    };
    const ballot = (round: number, of: NodeId) => ({ round, node: of });
    take(0, { type: "heartbeat", ballot: ballot(3, 0), round: 1, decided: 0 });
    const asked = (released: Ballot | null) => take(2, { type: "prepare", ballot: ballot(4, 2), from: 1, released });
    expect(asked(null)).toEqual(["nack"]);
    expect(asked(ballot(2, 0))).toEqual(["nack"]);
    expect(asked(ballot(3, 0))).toEqual(["promise"]);
  });
});

describe("multi-paxos: properties", () => {
  it("the view of a long log costs no more than the view of a short one", () => {
    const log = Object.fromEntries(
      range(1, 5_000).map((slot) => [slot, { ballot: { round: 1, node: 0 }, value: { type: "noop" } as const }]),
    );
    const unlisted = new Proxy(log, {
      ownKeys() {
        throw new Error("all slots are gone through");
      },
    });
    const protocol = multiPaxos();
    const state = { ...protocol.init(0, [1, 2]), log: unlisted, decided: 4_990 };
    expect(protocol.view(state, 0)).toMatchObject({ log: { decided: 4_990, last: 5_000 } });
  });

  it("an acceptor journals promises and accepted values before it answers", () => {
    const node = { self: 1, peers: [0, 2] };
    const ballot = { round: 1, node: 0 };
    const kinds = (message: MultiPaxos["message"]) =>
      step(multiPaxos(), node, multiPaxos().init(1, node.peers), { kind: "receive", from: 0, message })
        .effects.map(({ kind }) => kind)
        .filter((kind) => kind === "persist" || kind === "send");
    expect(kinds({ type: "prepare", ballot, from: 1, released: null })).toEqual(["persist", "send"]);
    expect(kinds({ type: "accept", ballot, slot: 1, value: { type: "noop" }, decided: 0 })).toEqual([
      "persist",
      "send",
    ]);
    expect(kinds({ type: "heartbeat", ballot, round: 1, decided: 0 })).toEqual(["persist", "send"]);
  });

  it.each<[Partial<MultiPaxosOptions>, string]>([
    [{ renewMs: 500 }, "expected multi-paxos.renewMs to be a number below leaseMs, which is 400, got 500"],
  ])("rejects the options %j", (options, sentence) => {
    expect(() => multiPaxos(options)).toThrow(sentence);
  });
});
