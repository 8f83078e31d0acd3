import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { walked } from "../../../../test/protocols/logs/explored.ts";
import { reaching } from "../../../../test/protocols/reached.ts";
import { eachSize, range } from "../../../../test/protocols/sizes.ts";
import { type Exploration, type ExploreOptions, explore } from "../../../check/explore.ts";
import { systemFor } from "../../../check/suite.ts";
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { type Stimulus, step } from "../../../core/step.ts";
import { simulation } from "../../../sim/simulation.ts";
import { logLine } from "../../../trace/log.ts";
import { type Paxos, paxos } from "./paxos.ts";

const propose = (value: string): Paxos["command"] => ({ type: "propose", value });

function stage(nodes: number, delayMs: number | readonly [number, number] = 10, seed = 1, options = {}) {
  const story: string[] = [];
  const sim = simulation<Paxos>({
    protocol: paxos(options),
    nodes: range(0, nodes - 1),
    seed,
    delayMs,
    trace: (entry) => story.push(logLine(entry)),
  });
  for (const node of range(0, nodes - 1)) sim.wake(node);
  story.length = 0;
  const decided = () => new Set(sim.world.alive.map((node) => sim.world.state(node).decided));
  return { sim, story, decided };
}

/** Creates three nodes whose messages the test delivers. */
function postman() {
  const protocol = paxos();
  const node = (self: NodeId) => ({ self, peers: [0, 1, 2].filter((peer) => peer !== self) });
  const states = [0, 1, 2].map((self) => protocol.init(self, node(self).peers));
  const mail: { from: NodeId; to: NodeId; message: Paxos["message"] }[] = [];
  const take = (self: NodeId, stimulus: Stimulus<Paxos>): void => {
    const { state, effects } = step(protocol, node(self), states[self] as Paxos["state"], stimulus);
    states[self] = state;
    for (const effect of effects) {
      const receivers = effect.kind === "send" ? [effect.to] : effect.kind === "broadcast" ? node(self).peers : [];
      for (const to of receivers)
        mail.push({ from: self, to, message: (effect as { message: Paxos["message"] }).message });
    }
  };
  const deliver = (from: NodeId, to: NodeId, type: Paxos["message"]["type"]): void => {
    const at = mail.findIndex((each) => each.from === from && each.to === to && each.message.type === type);
    const [letter] = mail.splice(at, 1);
    expect(letter?.message.type).toBe(type);
    if (letter !== undefined) take(to, { kind: "receive", from, message: letter.message });
  };
  return { take, deliver, decided: () => states.map(({ decided }) => decided) };
}

describe("paxos: stories", () => {
  it("one proposer, three acceptors: two round trips", async () => {
    const { sim, story, decided } = stage(3);
    sim.command(0, propose("x"));
    sim.run();
    expect(decided()).toEqual(new Set(["x"]));
    expect(story).toContain("    40.0  node 0  emits decided value x");
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/paxos-undisturbed.txt");
  });

  it("a second proposer finds the value that a majority has accepted, and proposes it", async () => {
    const { sim, story, decided } = stage(3, 10, 1, { acceptorsTell: "proposer" });
    sim.command(0, propose("x"));
    sim.run(15);
    sim.cut(0, 2); // Only node 1 receives the request to accept x …
    sim.run(25);
    sim.crash(0); // … and node 0 stops before it learns this.
    sim.run(60);
    story.length = 0;
    sim.command(2, propose("y"));
    sim.run();
    expect(decided()).toEqual(new Set(["x"]));
    await expect(`${story.join("\n")}\n`).toMatchFileSnapshot("../stories/paxos-second-proposer.txt");
  });
});

describe("paxos: costs", () => {
  eachSize(1, 64, "N = %i: (N − 1)(N + 3) messages for an undisturbed proposal", (nodes) => {
    const { sim, decided } = stage(nodes);
    sim.command(0, propose("x"));
    sim.run();
    expect(decided()).toEqual(new Set(["x"]));
    const others = nodes - 1;
    expect(sim.messages.byType).toEqual(
      nodes === 1 ? {} : { prepare: others, promise: others, accept: others, accepted: nodes * others },
    );
    expect(sim.messages.total).toBe(paxos().costs[0]?.messages(nodes));
  });

  eachSize(
    1,
    64,
    "N = %i, acceptors answer the proposer only: 4(N − 1) messages, and N − 1 to the learners",
    (nodes) => {
      const { sim, decided } = stage(nodes, 10, 1, { acceptorsTell: "proposer" });
      sim.command(0, propose("x"));
      sim.run();
      expect(decided()).toEqual(new Set(["x"]));
      const others = nodes - 1;
      expect(sim.messages.byType).toEqual(
        nodes === 1 ? {} : { prepare: others, promise: others, accept: others, accepted: others, decided: others },
      );
      expect(sim.messages.total).toBe(paxos({ acceptorsTell: "proposer" }).costs[0]?.messages(nodes));
    },
  );
});

describe("paxos: properties", () => {
  const happening = fc.record({
    at: fc.nat(400),
    node: fc.nat(4),
    what: fc.constantFrom("propose" as const, "crash" as const, "start" as const),
  });

  it("agreement and validity with any proposers, crashes and recoveries; termination once all are back", () => {
    fc.assert(
      fc.property(fc.nat(), fc.array(happening, { maxLength: 15 }), (seed, happenings) => {
        const { sim, decided } = stage(5, [1, 40], seed);
        const isAlive = (node: NodeId) => sim.world.alive.includes(node);
        const proposed = new Set<string | null>();
        const offer = (node: NodeId) => {
          proposed.add(`by ${node}`);
          sim.command(node, propose(`by ${node}`));
        };
        for (const { at, node, what } of happenings.sort((a, b) => a.at - b.at)) {
          sim.run(at);
          if (what === "start" && !isAlive(node)) sim.start(node);
          if (what === "crash" && isAlive(node)) sim.crash(node);
          if (what === "propose" && isAlive(node)) offer(node);
        }
        for (const node of range(0, 4)) if (!isAlive(node)) sim.start(node);
        for (const node of range(0, 4)) offer(node);
        sim.run();
        expect(sim.verdict()).toEqual([]);
        expect(decided().size).toBe(1);
        expect(proposed).toContain([...decided()][0]);
        const all = range(0, 4).flatMap((node) => sim.events(node).map(({ value }) => value));
        expect(new Set(all)).toEqual(decided());
      }),
      { numRuns: 200 },
    );
  });

  it("a minority waits, and decides once it is part of a majority", () => {
    const { sim, decided } = stage(3);
    for (const node of [1, 2]) sim.crash(node);
    sim.command(0, propose("x"));
    sim.run(10_000);
    expect(sim.verdict().map(({ property }) => property)).toEqual(["termination"]);
    sim.start(1);
    sim.run();
    expect(decided()).toEqual(new Set(["x"]));
    expect(sim.verdict()).toEqual([]);
  });

  it("a node that was cut off throughout learns the decision only once it proposes", () => {
    const { sim, decided } = stage(3);
    sim.partition([[0, 1], [2]]);
    sim.command(0, propose("a"));
    sim.run(100_000); // The last reminder was long ago.
    sim.heal();
    sim.run(200_000);
    expect(decided()).toEqual(new Set(["a", null]));
    sim.command(2, propose("b"));
    sim.run(300_000);
    expect(decided()).toEqual(new Set(["a"]));
    expect(sim.verdict()).toEqual([]);
  });

  it("an acceptor journals promises and accepted values before it answers", () => {
    const node = { self: 1, peers: [0, 2] };
    const ballot = { round: 1, node: 0 };
    const messages: Paxos["message"][] = [
      { type: "prepare", ballot },
      { type: "accept", proposal: { ballot, value: "x" } },
    ];
    const answers = messages.map((message) => {
      const { effects } = step(paxos(), node, paxos().init(1, node.peers), { kind: "receive", from: 0, message });
      return effects.map(({ kind }) => kind);
    });
    expect(answers).toEqual([
      ["persist", "send"],
      ["persist", "broadcast", "setTimer"],
    ]);
    const { effects } = step(paxos(), node, paxos().init(1, node.peers), { kind: "command", command: propose("x") });
    expect(effects.map(({ kind }) => kind)).toEqual(["setTimer", "persist", "broadcast"]);
  });

  it("A2: two proposers never decide if each prepare overtakes the other's accept", () => {
    const { take, deliver, decided } = postman();
    take(0, { kind: "command", command: propose("x") });
    deliver(0, 1, "prepare");
    deliver(1, 0, "promise");
    take(2, { kind: "command", command: propose("y") });
    for (const round of range(1, 100)) {
      const [late, early] = round % 2 === 1 ? [0, 2] : [2, 0];
      deliver(early, 1, "prepare");
      deliver(late, 1, "accept");
      deliver(1, late, "nack");
      deliver(1, early, "promise");
      take(late, { kind: "timeout", timer: "retry" });
      expect(decided()).toEqual([null, null, null]);
    }
  });

  /** Returns whether one of five concurrent proposers decides within 10 s of virtual time. */
  function decides(seed: number): boolean {
    let isDecided = false;
    const sim = simulation({
      protocol: { ...paxos(), properties: [] },
      nodes: range(0, 4),
      seed,
      delayMs: [1, 40],
      onEvent() {
        isDecided = true;
      },
    });
    for (const node of range(0, 4)) sim.wake(node);
    for (const node of range(0, 4)) sim.command(node, propose(`from ${node}`));
    while (!isDecided && sim.step(10_000));
    return isDecided;
  }
  const undecided = (seeds: number): number[] => range(1, seeds).filter((seed) => !decides(seed));

  it("FLP: decides with a random back-off, for every seed", () => {
    expect(undecided(200)).toEqual([]);
  });
  it("FLP: decides with a random back-off, for each of 10,000 seeds", { tags: ["larger"] }, () => {
    expect(undecided(10_000)).toEqual([]);
  });

  it("a random back-off ends a duel of proposers that refuse each other", () => {
    const refusals = range(1, 50).map((seed) => {
      const { sim, decided } = stage(5, [1, 40], seed);
      for (const node of range(0, 4)) sim.command(node, propose(`by ${node}`));
      sim.run();
      expect([decided().size, sim.verdict()]).toEqual([1, []]);
      return sim.messages.byType.nack ?? 0;
    });
    expect(Math.min(...refusals)).toBeGreaterThan(0);
  });

  it.each([2, 3, 4, 5, 7])("FLP: %i nodes in lockstep never decide without back-off, and do with it", (nodes) => {
    const run = (backsOff: boolean) => {
      const { sim, decided } = stage(nodes, 10, 1, { backsOff });
      for (const node of range(0, nodes - 1)) sim.command(node, propose(`by ${node}`));
      sim.run(10_000);
      return { decided: decided(), round: sim.world.state(0).round };
    };
    expect(run(false)).toEqual({ decided: new Set([null]), round: nodes === 2 ? 500 : 501 });
    expect(run(true).decided).toEqual(new Set([`by ${nodes - 1}`]));
  });

  it("late and repeated messages have no effect", () => {
    const { sim } = stage(3);
    sim.command(0, propose("x"));
    sim.run();
    const before = JSON.stringify(sim.world.state(0));
    const { receive, timeout, command } = paxos();
    const silent = { self: 0, peers: [1, 2] } as never; // Any effect would throw.
    const state = sim.world.state(0);
    const ballot = { round: 1, node: 0 };
    receive.learnt(state, 1, { type: "learnt" }, silent);
    timeout.learn(state, silent);
    receive.promise(state, 1, { type: "promise", ballot, accepted: null }, silent);
    receive.nack(state, 1, { type: "nack", ballot, promised: ballot }, silent);
    receive.accepted(state, 1, { type: "accepted", proposal: { ballot, value: "x" } }, silent);
    timeout.retry(state, silent);
    command.propose(state, propose("y"), silent);
    expect(JSON.stringify(sim.world.state(0))).toBe(before);
  });
});

/** Each proposer makes only one attempt by itself. Without this bound, rounds would grow forever. */
const once: Protocol<Paxos> = { ...paxos(), timeout: { retry: () => undefined, learn: () => undefined } };

/** Explores every run with proposals from nodes 0 and 2, in round 1 or 2. No proposer starts a second ballot. */
const model = (protocol: Protocol<Paxos>, more: Partial<ExploreOptions<Paxos>>): ExploreOptions<Paxos> => ({
  protocol,
  nodes: [0, 1, 2],
  network: "fifo",
  timers: "quiet",
  begin: "idle",
  commands: ({ round, promised, proposer }, self) =>
    self !== 1 && proposer.is === "idle" && round < 2 && promised?.node !== self ? [propose(`by ${self}`)] : [],
  ...more,
});

const exploring = (protocol: Protocol<Paxos>, more: Partial<ExploreOptions<Paxos>> = {}) =>
  reaching(explore<Paxos>(model(protocol, more)), "decided");

const valid: Property<Paxos> = {
  name: "validity",
  claim: "every decided value was proposed",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => [null, "by 0", "by 2"].includes(state(node).decided)),
};

/** Describes a counterexample, one move per line. */
const deeds = (path: Exploration<Paxos>["path"]): string[] =>
  path.map(({ move }) => {
    const said = move.kind === "receive" ? ` ${move.message.type} from ${move.from}` : "";
    return `${move.node} ${move.kind}${said}`;
  });

describe("paxos: every run of two proposers", () => {
  const properties = [...paxos().properties.filter(({ name }) => name === "agreement"), valid];

  it("keeps agreement and validity", () => {
    expect(exploring(once, { properties })).toMatchObject({ verdict: "holds", states: 88_869 });
  });

  it("keeps agreement and validity with a crash and a recovery from the journal", { tags: ["long"] }, () => {
    const faults = { crashes: 1, recoveries: 1 };
    expect(exploring(once, { properties, ...faults })).toMatchObject({ verdict: "holds", states: 1_272_393 });
  });

  it("keeps agreement and validity with the loss of any message", { tags: ["long"] }, () => {
    expect(exploring(once, { properties, losses: 1 })).toMatchObject({ verdict: "holds", states: 383_376 });
  });

  /** Breadth-first search does not finish here: 1,500,000 states reach a depth of 15. */
  const title = "keeps agreement and validity with all of these in %i states";
  const allFaults = { properties, crashes: 1, recoveries: 1, losses: 1 };
  it.each([100_000])(title, { tags: ["long"] }, isSafe);
  it.each([500_000])(title, { tags: ["larger"] }, isSafe);

  function isSafe(maxStates: number): void {
    const found = exploring(once, { ...allFaults, maxStates });
    expect([found.verdict, found.property]).toEqual(["unknown", null]);
  }

  it("keeps agreement and validity with all of these in random, PCT and swarm runs", { tags: ["long"] }, () => {
    walked(model(once, { ...allFaults, timers: "free", maxTimeouts: 6 }), "decided", "receive nack", "replay accepted");
  });

  it("decides two values when an acceptor loses its journal, and with it its promise and accepted value", () => {
    const { property, path } = exploring(once, { properties, crashes: 1, recoveries: 1, journal: "lost" });
    expect(property?.name).toBe("agreement");
    expect(deeds(path)).toEqual([
      "0 command",
      "1 receive prepare from 0",
      "2 command",
      "1 receive prepare from 2",
      "1 crash",
      "1 start",
      "0 receive promise from 1",
      "1 receive accept from 0", // It has promised node 2 to refuse this.
      "0 receive accepted from 1",
      "2 receive promise from 1",
      "1 receive accept from 2",
      "1 receive accepted from 2",
    ]);
    expect(path.at(-1)?.states.map((state) => state?.decided)).toEqual(["by 0", "by 2", null]);
  });

  it("termination: dueling proposers overtake each other forever", () => {
    const duel = { protocol: "paxos", nodes: [0, 1, 2], initiators: [0, 2], property: "termination" } as const;
    const { verdict, property, path, loop } = explore(systemFor({ ...duel, maxInFlight: 4 }));
    expect([verdict, property?.name, loop, path.length]).toEqual(["violated", "termination", 3, 13]);
    const ballots = path.map(({ states }) => (states as Paxos["state"][]).map(({ round }) => round));
    // After one cycle both nodes are in the same situation, but one round later.
    expect([ballots[2], ballots[12]]).toEqual([
      [1, 1, 1],
      [2, 2, 2],
    ]);
    expect(deeds(path.slice(3) as Exploration<Paxos>["path"])).toEqual([
      "0 receive prepare from 2",
      "1 receive prepare from 2", // Node 1 promises 2 …
      "2 receive prepare from 0",
      "0 receive nack from 2",
      "0 receive promise from 1",
      "2 timeout",
      "2 receive promise from 0",
      "2 receive promise from 1",
      "0 timeout",
      "1 receive prepare from 0", // … and then 0, whose prepare overtakes 2's accept.
    ]);
    // With timeouts only while no message is in flight, no proposer is overtaken.
    expect(reaching(explore(systemFor({ ...duel, timers: "quiet" })), "decided")).toMatchObject({
      verdict: "holds",
      states: 88_628,
    });
  });

  it("FLP: without back-off eight messages repeat forever, with fairness to all nodes and without a timer", () => {
    const duel = { protocol: "paxos", variant: "duelling", nodes: [0, 1, 2], initiators: [0, 1] } as const;
    const found = explore(systemFor({ ...duel, property: "termination", timers: "never", maxInFlight: 5 }));
    expect([found.verdict, found.property?.name, found.loop]).toEqual(["violated", "termination", 4]);
    expect(deeds(found.path.slice(4) as Exploration<Paxos>["path"])).toEqual([
      "2 receive prepare from 0",
      "0 receive nack from 2",
      "0 receive promise from 1",
      "0 receive prepare from 1",
      "1 receive prepare from 0",
      "1 receive nack from 0",
      "1 receive promise from 2",
      "2 receive prepare from 1",
    ]);
  });

  it("finds the violation by a lost journal with merged states too: the restarted node counts from 0", () => {
    const faults = { crashes: 1, recoveries: 1, timers: "never", property: "agreement" } as const;
    const spec = { protocol: "paxos", nodes: [0, 1, 2], initiators: [0, 1], ...faults } as const;
    const { verdict, path } = explore(systemFor({ ...spec, journal: "lost" }));
    expect([verdict, path.length]).toEqual(["violated", 12]);
    expect(new Set(path.at(-1)?.states.map((state) => (state as Paxos["state"]).decided)).size).toBeGreaterThan(1);
  });
});
