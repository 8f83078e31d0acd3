import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { reaching } from "../../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type Stimulus, step } from "../../../core/step.ts";
import type { LinkModel } from "../../../sim/index.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { twoPhaseCommit } from "./two-phase-commit.ts";
import type { Decision, TwoPhaseCommit, TwoPhaseCommitOptions } from "./vocabulary.ts";

const propose = (transactions = 1): TwoPhaseCommit["command"] => ({ type: "propose", transactions });
const refuse: TwoPhaseCommit["command"] = { type: "refuse" };

function stage(
  nodes: number,
  options: Partial<TwoPhaseCommitOptions> = {},
  delayMs: number | [number, number] = 10,
  seed = 1,
  link: Partial<LinkModel> = {},
) {
  const story: string[] = [];
  const decided: { at: number; node: NodeId; name: string; value: Decision }[] = [];
  const sim = simulation<TwoPhaseCommit>({
    protocol: twoPhaseCommit(options),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    link,
    trace: (entry) => story.push(logLine(entry)),
    onEvent(at, node, event) {
      if (event.type !== "decided") return;
      const { coordinator, number } = event.transaction;
      decided.push({ at, node, name: `${coordinator}.${number}`, value: event.value });
    },
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  story.length = 0;
  const of = (name: string) =>
    Object.fromEntries(decided.filter((each) => each.name === name).map(({ node, value }) => [node, value]));
  const isInDoubt = (node: NodeId) =>
    Object.values(sim.world.state(node).parts).some(({ status }) => status === "in doubt");
  return { sim, story, decided, of, isInDoubt };
}

const everybody = (nodes: number, value: Decision) =>
  Object.fromEntries(range(0, nodes - 1).map((node) => [node, value]));

/** @returns the journals of three nodes when messages arrive in the order of sending */
function journalled(command: TwoPhaseCommit["command"]): string[] {
  const protocol = twoPhaseCommit();
  const peersOf = (self: NodeId) => [0, 1, 2].filter((peer) => peer !== self);
  const states = [0, 1, 2].map((self) => protocol.init(self, peersOf(self)));
  const records: string[] = [];
  const queue: { to: NodeId; stimulus: Stimulus<TwoPhaseCommit> }[] = [
    { to: 0, stimulus: { kind: "command", command } },
  ];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { to: self, stimulus } = next;
    const { state, effects } = step(protocol, { self, peers: peersOf(self) }, states[self] as never, stimulus);
    states[self] = state;
    for (const effect of effects) {
      if (effect.kind === "persist") records.push(`${self} ${effect.record.type}`);
      if (effect.kind !== "send" && effect.kind !== "broadcast") continue;
      for (const to of effect.kind === "send" ? [effect.to] : peersOf(self))
        queue.push({ to, stimulus: { kind: "receive", from: self, message: effect.message } });
    }
  }
  return records;
}

describe("two-phase commit: stories", () => {
  it("commits when all nodes vote yes", async () => {
    const { sim, story, of } = stage(3);
    sim.command(0, propose());
    sim.run();
    expect(of("0.1")).toEqual(everybody(3, "commit"));
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/two-phase-commit-undisturbed.txt");
  });

  it("aborts after one no, without acknowledgements", async () => {
    const { sim, story, of } = stage(3);
    sim.command(2, refuse);
    sim.command(0, propose());
    sim.run();
    expect(of("0.1")).toEqual(everybody(3, "abort"));
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/two-phase-commit-one-no.txt");
  });

  it("participants block while the coordinator is down after the votes, and abort when it is back", async () => {
    const { sim, story, of, isInDoubt } = stage(3);
    sim.command(0, propose());
    sim.run(15);
    sim.crash(0);
    sim.run(2_500);
    expect([1, 2].map(isInDoubt)).toEqual([true, true]);
    sim.start(0);
    sim.run(4_000);
    expect(of("0.1")).toEqual({ 1: "abort", 2: "abort" });
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/two-phase-commit-blocked.txt");
  });

  it("a coordinator that crashes after its commit sends the commit when it is back", () => {
    const { sim, of } = stage(3);
    sim.command(0, propose());
    sim.run(20);
    sim.crash(0); // The decisions are in flight and arrive; its journal agrees with them.
    sim.cut(0, 2);
    sim.run(1_000);
    sim.start(0);
    sim.heal();
    sim.run(3_000);
    expect(of("0.1")).toEqual(everybody(3, "commit"));
  });
});

describe("two-phase commit: costs", () => {
  eachSize(1, 64, "N = %i: 3(N − 1) messages until all nodes know, 4(N − 1) with acknowledgements", (nodes) => {
    const { sim, of } = stage(nodes);
    sim.command(0, propose());
    sim.run();
    const others = nodes - 1;
    expect(of("0.1")).toEqual(everybody(nodes, "commit"));
    const { acknowledgement = 0, ...first } = sim.messages.byType;
    expect(Object.values(first).reduce((sum, count) => sum + count, 0)).toBe(3 * others);
    expect(acknowledgement).toBe(others);
    expect(twoPhaseCommit().costs.map(({ messages }) => messages(nodes))).toEqual([sim.messages.total, 3 * others]);
  });

  it.each([3, 4, 5, 7, 9])("N = %i: an abort with k no votes costs 3(N − 1) − k, since those nodes know", (nodes) => {
    const { sim, of } = stage(nodes);
    sim.command(1, refuse);
    sim.command(0, propose());
    sim.run();
    expect(of("0.1")).toEqual(everybody(nodes, "abort"));
    expect(sim.messages.total).toBe(3 * (nodes - 1) - 1);
  });

  it("journals the commit once, each participant's vote and decision, and a record that allows forgetting", () => {
    expect(journalled(propose(2)).slice(-6)).toEqual([
      "1 prepared",
      "2 prepared",
      "0 committed",
      "1 finished",
      "2 finished",
      "0 ended",
    ]);
  });

  it.each([0, 1_000, 5_000])(
    "a participant is in doubt for 2 delays, plus %i ms of downtime of the coordinator and the time until its next inquiry",
    (downMs) => {
      const { sim, decided } = stage(5);
      sim.command(0, propose());
      sim.run(15);
      if (downMs > 0) {
        sim.crash(0);
        sim.run(15 + downMs);
        sim.start(0);
      }
      sim.run(20_000);
      const last = Math.max(...decided.filter(({ node }) => node !== 0).map(({ at }) => at));
      const votedAt = 10;
      expect(last - votedAt).toBe(downMs === 0 ? 20 : downMs + 1_000 + 20);
    },
  );
});

describe("two-phase commit: properties", () => {
  const happening = fc.record({
    at: fc.nat(3_000),
    node: fc.nat(4),
    what: fc.constantFrom("propose" as const, "crash" as const, "start" as const, "refuse" as const, "agree" as const),
  });

  const orderly = { delay: [1, 400], order: "fifo" } as const;
  /** Messages overtake each other and arrive twice, so late copies arrive during later transactions. */
  const disorderly = { delay: { logNormal: { medianMs: 15, sigma: 2 } }, order: "none", duplicateRate: 0.4 } as const;

  it.each([
    [false, "slow links", 5, orderly],
    [true, "slow links", 5, orderly],
    [false, "late copies", 3, disorderly],
    [true, "late copies", 3, disorderly],
  ] as const)(
    "any coordinators, votes, crashes and recoveries; all nodes know once all are back (cooperative: %j, %s)",
    (isCooperative, _links, nodes, link) => {
      fc.assert(
        fc.property(fc.nat(), fc.array(happening, { maxLength: 25 }), (seed, happenings) => {
          const { sim, isInDoubt } = stage(nodes, { isCooperative }, 10, seed, link);
          const isAlive = (node: NodeId) => sim.world.alive.includes(node);
          for (const { at, node: drawn, what } of happenings.sort((a, b) => a.at - b.at)) {
            const node = drawn % nodes;
            sim.run(at);
            if (what === "start" && !isAlive(node)) sim.start(node);
            if (what === "crash" && isAlive(node)) sim.crash(node);
            if (what === "propose" && isAlive(node)) sim.command(node, propose(4));
            if ((what === "refuse" || what === "agree") && isAlive(node)) sim.command(node, { type: what });
          }
          for (const node of range(0, nodes - 1)) if (!isAlive(node)) sim.start(node);
          sim.run(60_000);
          expect(sim.verdict()).toEqual([]);
          expect(range(0, nodes - 1).filter(isInDoubt)).toEqual([]);
        }),
        { numRuns: 100 },
      );
    },
  );

  /**
   * Transaction numbers are journaled a hundred at a time, so two restarts bring them close to the 256 of the next
   * summary.
   */
  it("loses no vote and no commit in a crash around the rewriting of a journal", () => {
    const crash = fc.record({
      node: fc.nat(2),
      number: fc.integer({ min: 254, max: 259 }),
      afterMs: fc.nat(40),
      downMs: fc.constantFrom(0, 300, 3_000),
    });
    fc.assert(
      fc.property(fc.nat(), fc.array(crash, { minLength: 1, maxLength: 4 }), (seed, crashes) => {
        const nodes = [0, 1, 2];
        const link = { delay: [1, 25], lossRate: 0.1 } as const;
        const sim = simulation({
          protocol: twoPhaseCommit(),
          nodes,
          seed,
          delayMs: 10,
          link,
          properties: "at the end",
        });
        for (const node of nodes) sim.start(node);
        for (const restart of [1, 2]) {
          for (const node of nodes) sim.command(node, propose());
          sim.run(restart * 1_000);
          for (const node of nodes) {
            sim.crash(node);
            sim.start(node);
          }
        }
        for (const node of nodes) sim.command(node, propose(80));
        const isBefore = (number: number) => sim.world.alive.every((node) => sim.world.state(node).number < number);
        for (const { node, number, afterMs, downMs } of crashes.toSorted((one, other) => one.number - other.number)) {
          while (isBefore(number) && sim.step(sim.now + 1_000));
          sim.run(sim.now + afterMs);
          sim.crash(node);
          sim.run(sim.now + downMs);
          sim.start(node);
        }
        sim.run(60_000);
        expect(sim.verdict()).toEqual([]);
        expect(isBefore(256)).toBe(false);
      }),
      { numRuns: 25 },
    );
  });

  it("journals a vote before it sends the vote, and a commit before it sends the decision", () => {
    const protocol = twoPhaseCommit();
    const transaction = { coordinator: 0, number: 1 };
    const participant = step(protocol, { self: 1, peers: [0] }, protocol.init(1, [0]), {
      kind: "receive",
      from: 0,
      message: { type: "voteRequest", transaction },
    });
    expect(participant.effects.map(({ kind }) => kind)).toEqual(["persist", "emit", "send", "setTimer"]);
    const asked = step(protocol, { self: 0, peers: [1] }, protocol.init(0, [1]), {
      kind: "command",
      command: propose(),
    });
    expect(asked.effects.map(({ kind }) => kind)).toEqual(["persist", "emit", "broadcast", "setTimer"]);
    const commits = step(protocol, { self: 0, peers: [1] }, asked.state, {
      kind: "receive",
      from: 1,
      message: { type: "vote", transaction, vote: "yes" },
    });
    expect(commits.effects.map(({ kind }) => kind)).toEqual(["cancelTimer", "persist", "emit", "send", "setTimer"]);
  });

  it("the summary record keeps a vote in doubt and an unacknowledged commit", () => {
    const protocol = twoPhaseCommit();
    const own = { transaction: { coordinator: 1, number: 7 }, missing: [2] };
    const inDoubt = { transaction: { coordinator: 2, number: 3 }, status: "in doubt" } as const;
    const transaction = { coordinator: 0, number: 256 };
    const state: TwoPhaseCommit["state"] = {
      ...protocol.init(1, [0, 2]),
      coordinator: { phase: "committed", ...own },
      parts: { 0: { transaction, status: "in doubt" }, 2: inDoubt },
    };
    const message = { type: "decision", transaction, decision: "abort" } as const;
    const { effects } = step(protocol, { self: 1, peers: [0, 2] }, state, { kind: "receive", from: 0, message });
    const [summary] = effects.flatMap((effect) => (effect.kind === "compact" ? effect.records : []));
    expect(summary).toMatchObject({
      type: "summary",
      committed: own,
      parts: { 0: { transaction, status: "abort" }, 2: inDoubt },
    });
  });

  it("late and repeated messages have no effect", () => {
    const { sim } = stage(3);
    sim.command(0, propose());
    sim.run();
    const before = JSON.stringify([0, 1].map((node) => sim.world.state(node)));
    const { receive, timeout } = twoPhaseCommit();
    const silent = { self: 0, peers: [1, 2] } as never; // Any effect would throw.
    const transaction = { coordinator: 0, number: 1 };
    const [coordinator, participant] = [sim.world.state(0), sim.world.state(1)];
    receive.vote(coordinator, 1, { type: "vote", transaction, vote: "no" }, silent);
    receive.acknowledgement(coordinator, 1, { type: "acknowledgement", transaction }, silent);
    receive.voteRequest(participant, 0, { type: "voteRequest", transaction }, silent);
    // This message belongs to a different coordinator.
    receive.voteRequest(participant, 2, { type: "voteRequest", transaction }, silent);
    receive.decision(participant, 0, { type: "decision", transaction, decision: "abort" }, silent);
    timeout.votes(coordinator, silent);
    timeout.acknowledgements(coordinator, silent);
    timeout.decision(participant, silent);
    expect(JSON.stringify([coordinator, participant])).toBe(before);
  });

  it("300 transactions with crashes keep the journal short and use no number twice", () => {
    const { sim, decided } = stage(3);
    for (const round of range(1, 6)) {
      sim.command(0, propose(100));
      sim.run(round * 6_000);
      for (const node of [0, 1, 2]) sim.crash(node);
      for (const node of [0, 1, 2]) sim.start(node);
    }
    expect(sim.verdict()).toEqual([]);
    expect(decided).toHaveLength(6 * 100 * 3);
    expect(new Set(decided.map(({ node, name }) => `${node} ${name}`)).size).toBe(6 * 100 * 3);
  });

  it("a participant in doubt aborts the earlier transaction when its next vote is requested", () => {
    const { sim, decided } = stage(3);
    sim.command(2, refuse);
    sim.command(0, propose(2));
    sim.run(15);
    sim.cut(0, 1); // Node 1 has voted yes. The abort is lost on the way to it.
    sim.run(25);
    sim.mend(0, 1);
    sim.command(2, { type: "agree" });
    sim.command(0, propose());
    sim.run(900); // Node 1 would ask for the outcome only later.
    expect(decided.filter(({ node }) => node === 1).map(({ name, value }) => [name, value])).toEqual([
      ["0.1", "abort"],
      ["0.3", "commit"],
    ]);
    expect(sim.verdict()).toEqual([]);
  });

  it("cooperative: participants in doubt learn the decision from another one while the coordinator is down", () => {
    const run = (isCooperative: boolean) => {
      const { sim, of } = stage(4, { isCooperative });
      sim.command(0, propose());
      sim.run(15);
      sim.cut(0, 2);
      sim.cut(0, 3);
      sim.run(25);
      sim.crash(0);
      sim.run(10_000);
      return of("0.1");
    };
    expect(run(false)).toEqual({ 0: "commit", 1: "commit" });
    expect(run(true)).toEqual(everybody(4, "commit"));
  });

  it("cooperative: a participant without a vote request aborts on its own, and votes no if it is asked later", () => {
    const { sim, of } = stage(3, { isCooperative: true });
    sim.setLink(0, 2, { delay: 1_500 });
    sim.command(0, propose());
    sim.run(450);
    sim.crash(0);
    sim.run(10_000);
    expect(of("0.1")).toEqual({ 1: "abort", 2: "abort" });
  });

  it.each<[Partial<TwoPhaseCommitOptions>, string]>([])("rejects the options %j", (options, sentence) => {
    expect(() => twoPhaseCommit(options)).toThrow(sentence);
  });
});

/** Explores every run of one transaction: node 0 coordinates it, and node 2 may vote no. */
const exploring = (
  more: Partial<ExploreOptions<TwoPhaseCommit>> = {},
  protocol: Protocol<TwoPhaseCommit> = twoPhaseCommit(),
) =>
  explore<TwoPhaseCommit>({
    protocol,
    nodes: [0, 1, 2],
    network: "fifo",
    timers: "free",
    begin: "idle",
    asks: (node) => (node === 0 ? [propose()] : node === 2 ? [refuse] : []),
    maxInFlight: 4,
    properties: protocol.properties.filter(({ when }) => when === "always"),
    ...more,
  });

const deeds = (path: Exploration<TwoPhaseCommit>["path"]): string[] =>
  path.map(
    ({ move }) =>
      `${move.node} ${move.kind}${move.kind === "receive" ? ` ${move.message.type} from ${move.from}` : ""}`,
  );

describe("two-phase commit: every run", () => {
  it("is atomic and unanimous when any node crashes at any point, even within a step, and recovers", () => {
    const found = exploring({ crashes: 1, recoveries: 1, withinStep: true, timers: "quiet", maxInFlight: 100 });
    expect(reaching(found, "decided", "receive inquiry", "replay committed", "replay prepared")).toMatchObject({
      verdict: "holds",
      states: 778,
    });
  });

  it("is atomic and unanimous when all nodes crash and recover, and timers expire at any time", {
    tags: ["long"],
  }, () => {
    const found = exploring({ crashes: 3, recoveries: 3, withinStep: true, maxInFlight: 5 });
    expect(reaching(found, "decided", "receive inquiry", "replay committed", "replay prepared")).toMatchObject({
      verdict: "unknown", // Runs with more messages in flight are cut off.
      states: 94_822,
    });
  });

  it("is atomic when participants in doubt ask each other, with one crash and one loss", () => {
    const faults = { crashes: 1, recoveries: 1, losses: 1 };
    const found = exploring({ ...faults, timers: "quiet", maxInFlight: 100 }, twoPhaseCommit({ isCooperative: true }));
    expect(reaching(found, "decided", "receive inquiry")).toMatchObject({ verdict: "holds", states: 4_458 });
  });

  it("all nodes eventually know the decision if none crashes, even if a message is lost", () => {
    const found = exploring({ losses: 1, timers: "quiet", properties: twoPhaseCommit().properties });
    expect(reaching(found, "decided")).toMatchObject({ verdict: "holds", states: 161 });
  });

  it("blocks: after a crash of the coordinator, participants that voted yes ask forever", () => {
    const found = exploring({ crashes: 1, timers: "quiet", properties: twoPhaseCommit().properties });
    expect([found.verdict, found.property?.name, found.loop]).toEqual(["violated", "termination", 5]);
    expect(deeds(found.path)).toEqual([
      "0 command",
      "0 crash",
      "1 receive voteRequest from 0",
      "2 command", // A no from node 2 does not help node 1.
      "2 receive voteRequest from 0",
      "1 timeout",
    ]);
  });

  it("a coordinator without its journal forgets its commit, and presumes an abort", () => {
    const properties = twoPhaseCommit().properties.filter(({ name }) => name === "atomicity");
    const found = exploring({ crashes: 1, recoveries: 1, journal: "lost", withinStep: true, properties });
    expect([found.verdict, found.property?.name]).toEqual(["violated", "atomicity"]);
    expect(deeds(found.path)).toEqual([
      "0 command",
      "1 receive voteRequest from 0",
      "0 receive vote from 1",
      "2 receive voteRequest from 0",
      "0 receive vote from 2", // Node 0 commits, and crashes before it sends anything.
      "0 start",
      "1 timeout",
      "0 receive inquiry from 1",
      "1 receive decision from 0",
    ]);
  });

  it("a participant without its journal forgets its yes, and aborts on its own when another node asks", () => {
    const faults = { crashes: 1, recoveries: 1, journal: "lost" } as const;
    const forgetful = exploring(faults, twoPhaseCommit({ isCooperative: true }));
    expect([forgetful.verdict, forgetful.property?.name]).toEqual(["violated", "memory"]);
    const properties = twoPhaseCommit().properties.filter(({ name }) => name === "atomicity");
    const found = exploring({ ...faults, properties }, twoPhaseCommit({ isCooperative: true }));
    expect([found.verdict, found.property?.name]).toEqual(["violated", "atomicity"]);
    expect(deeds(found.path)).toEqual([
      "0 command",
      "1 receive voteRequest from 0",
      "0 receive vote from 1",
      "1 crash",
      "1 start",
      "2 receive voteRequest from 0",
      "0 receive vote from 2",
      "2 timeout",
      "1 receive inquiry from 2",
    ]);
  });
});
