import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol } from "../core/protocol.ts";
import { natural } from "../core/shape.ts";
import { byzantine } from "../protocols/byzantine.ts";
import { paxos } from "../protocols/consensus/paxos/paxos.ts";
import { raft } from "../protocols/consensus/raft/raft.ts";
import { bully } from "../protocols/election/bully/bully.ts";
import { protocolNamed, protocolNames } from "../protocols/index.ts";
import { simulation } from "../sim/simulation.ts";
import type { TraceEntry } from "./entry.ts";
import { replay } from "./replay.ts";

const nodes = [0, 1, 2, 3];

/** Records a run: the highest node leads and crashes, and the lowest one then calls an election. */
function election(): TraceEntry[] {
  const entries: TraceEntry[] = [];
  const run = simulation({
    protocol: bully(),
    nodes,
    seed: 1,
    delayMs: [1, 3],
    trace: (entry) => entries.push(entry as TraceEntry),
  });
  for (const node of nodes) run.start(node);
  run.run();
  run.crash(3);
  run.command(0, { type: "call" });
  run.run();
  expect(run.verdict()).toEqual([]);
  return entries;
}

const of = (entries: readonly TraceEntry[], protocol = bully()) => replay(protocol as never, nodes, entries as never[]);
const leaders = (entries: readonly TraceEntry[], until: number) =>
  replay(bully(), nodes, entries as never[], { until }).snapshot.nodes.map(({ state }) => state?.leader ?? null);

describe("a complete recording", () => {
  const entries = election();

  it("is followed to its end, and its properties hold", () => {
    const { verdict, doubts, findings, snapshot, steps } = of(entries);
    expect({ verdict, doubts }).toEqual({ verdict: "holds", doubts: [] });
    expect(findings.map(({ property, verdict }) => [property.name, verdict])).toEqual([
      ["E1 safety", "holds"],
      ["E1 eventually", "holds"],
      ["E2 liveness", "holds"],
      ["E2 termination", "holds"],
    ]);
    expect(steps).toBe(entries.filter(({ kind }) => ["start", "receive", "timeout", "command"].includes(kind)).length);
    expect(snapshot.inFlight).toEqual([]);
  });

  it("has all states at any point: leaders, messages in flight, running timers", () => {
    const crash = entries.findIndex(({ kind }) => kind === "crash");
    expect(leaders(entries, crash)).toEqual([3, 3, 3, 3]);
    expect(leaders(entries, entries.length)).toEqual([2, 2, 2, null]);
    const call = entries.findIndex(({ kind }) => kind === "command");
    const { snapshot } = replay(bully(), nodes, entries as never[], { until: call + 1 });
    expect(snapshot.inFlight.map(({ from, to, message }) => [from, to, message])).toEqual([
      [0, 1, { type: "election" }],
      [0, 2, { type: "election" }],
    ]);
    expect(snapshot.nodes[0]?.timers).toEqual([{ timer: "answer", remainingMs: 180 }]);
    expect(snapshot.nodes[3]).toEqual({ id: 3, state: null, journal: [], timers: [] });
  });

  it("reports nothing if nothing happens in it", () => {
    const { verdict, findings } = of([]);
    expect(verdict).toBe("unknown");
    expect(findings.map((finding) => [finding.verdict, finding.why])).toEqual(
      findings.map(() => ["unknown", "nothing happens in this recording"]),
    );
  });

  it("is not changed", () => {
    const before = JSON.stringify(entries);
    of(entries);
    expect(JSON.stringify(entries)).toBe(before);
  });
});

describe("rejects a recording of something else", () => {
  const entries = election();
  const changed = (index: number, change: object): TraceEntry[] =>
    entries.map((entry, i) => (i === index ? { ...entry, ...change } : entry));
  const doubtOf = (some: readonly TraceEntry[]) => {
    const { verdict, doubts } = of(some);
    expect(verdict).toBe("unknown");
    return [doubts[0]?.node, doubts[0]?.why, doubts[0]?.sentence];
  };
  const indexOf = (kind: string): number => entries.findIndex((entry) => entry.kind === kind);

  it("a message that the handlers do not send", () => {
    const index = indexOf("send");
    expect(doubtOf(changed(index, { message: { type: "coordinator" } }))).toEqual([
      entries[index]?.node,
      "mismatch",
      `the handlers send {"type":"election"} to 1, the recording has send {"type":"coordinator"} to 1`,
    ]);
  });

  it("one message less, or one more", () => {
    const index = indexOf("send");
    const twice = entries.toSpliced(index, 0, entries[index] as TraceEntry);
    expect(doubtOf(twice)[1]).toBe("mismatch");
    expect(doubtOf(entries.toSpliced(index, 1))[1]).toBe("mismatch");
  });

  it("a state that the handlers do not reach", () => {
    expect(doubtOf(changed(indexOf("view"), { state: { phase: "idle" } }))[2]).toMatch(
      /^its state is \{.*"phase":"idle"\}$/,
    );
  });

  it("a timeout of a timer that was not set, and a message that the protocol does not have", () => {
    const last = entries.at(-1) as TraceEntry;
    expect(doubtOf([...entries, { at: last.at, node: 0, kind: "timeout", timer: "answer" }])[2]).toBe(
      "timer answer expires, but it was not set",
    );
    expect(doubtOf([...entries, { at: last.at, node: 0, kind: "command", command: { type: "dance" } }])[2]).toBe(
      'the handlers reject it: bully has no command handler for "dance"',
    );
  });

  it("a node that does not exist", () => {
    expect(doubtOf([...entries, { at: 1_000, node: 9, kind: "start" }])[2]).toContain("node 9 is not one of");
  });
});

describe("if entries are missing, the answer is unknown from there on", () => {
  const entries = election();
  const middle = entries.findIndex(({ kind }) => kind === "timeout");

  it("at a gap, until the node starts again", () => {
    const gap: TraceEntry = { at: 0, node: 1, kind: "gap", dropped: 3 };
    const { verdict, doubts, lost, findings } = of(entries.toSpliced(middle, 0, gap));
    expect(verdict).toBe("unknown");
    expect(doubts).toEqual([{ entry: middle, node: 1, why: "gap", sentence: "at least 3 of its entries are missing" }]);
    expect(lost).toEqual([1]);
    expect(findings.every(({ verdict, why }) => verdict === "unknown" && why === "not every state is known")).toBe(
      true,
    );
    const restarted = of([...entries.toSpliced(middle, 0, gap), { at: 9e3, node: 1, kind: "crash" }]);
    expect([restarted.verdict, restarted.lost]).toEqual(["unknown", []]);
  });

  it("in a recording that begins in the middle", () => {
    const crash = entries.findIndex(({ kind }) => kind === "crash");
    const { verdict, lost, doubts } = of(entries.slice(crash));
    expect(verdict).toBe("unknown");
    expect(lost).toEqual([0, 1, 2]);
    expect(doubts.map(({ why }) => why)).toEqual(Array(4).fill("begins in the middle"));
  });

  it("if a node receives a message without a recorded sending, unless its sender then crashes", () => {
    const send = entries.findLastIndex(({ kind, node }) => kind === "send" && node === 2);
    const cut = entries.toSpliced(send, 1);
    expect(of(cut).verdict).toBe("unknown");
    const receipt = entries.findLastIndex((entry) => entry.kind === "receive" && entry.from === 2);
    const at = entries[receipt]?.at ?? 0;
    const dies = [...cut, { at, node: 2, kind: "crash" } as TraceEntry];
    expect(of(dies).doubts).toEqual([]);
  });
});

describe("journals", () => {
  it("are replayed when a node restarts, as far as a crash left them intact", () => {
    const ids = [0, 1, 2];
    for (const journal of ["kept", "lost"] as const) {
      const entries: TraceEntry[] = [];
      const run = simulation({
        protocol: paxos(),
        nodes: ids,
        seed: 4,
        delayMs: [1, 3],
        trace: (entry) => entries.push(entry as TraceEntry),
      });
      for (const node of ids) run.start(node);
      run.command(0, { type: "propose", value: "a" });
      run.run(1_000);
      run.crash(1, { journal });
      run.start(1);
      run.command(1, { type: "propose", value: "b" });
      run.run(2_000);
      const { verdict, doubts } = replay(paxos(), ids, entries as never[]);
      // Without its journal, node 1 does not know that it has decided, and decides again.
      const expected = journal === "kept" ? "holds" : "violated";
      expect({ verdict, doubts }, journal).toEqual({ verdict: expected, doubts: [] });
    }
  });

  it("include the records that a real process finds, even of steps whose entries were lost in a kill", () => {
    const journal = [{ type: "promised", ballot: { round: 3, node: 2 } }];
    const view = { role: "acceptor", term: 3 };
    const state = { ...paxos().init(0, [1, 2]), round: 3, promised: { round: 3, node: 2 } };
    const restart = (found: object): TraceEntry[] => [
      { at: 0, node: 0, kind: "start", journal: [] },
      { at: 1, node: 0, kind: "gap", dropped: 1 },
      { at: 2, node: 0, kind: "crash" },
      { at: 3, node: 0, kind: "start", ...found },
      { at: 3, node: 0, kind: "view", view, state },
    ];
    const why = (entries: TraceEntry[]) =>
      replay(paxos(), [0, 1, 2], entries as never[]).doubts.map(({ sentence }) => sentence);
    const gap = "at least 1 of its entries are missing";
    expect(why(restart({ journal }))).toEqual([gap]);
    expect(replay(paxos(), [0, 1, 2], restart({ journal }) as never[]).lost).toEqual([]);
    expect(replay(paxos(), [0, 1, 2], restart({}) as never[]).lost).toEqual([0]);
    const mismatch = expect.stringMatching(/^its state is .* the recording has/);
    expect(why(restart({ journal }).toSpliced(1, 1))).toEqual([]);
    expect(why(restart({}).toSpliced(1, 1))).toEqual([mismatch]);
  });
});

describe("any simulated run", () => {
  it.each(protocolNames)("of %s is followed to the states that the simulator has", (name) => {
    const { model, family } = protocolNamed(name);
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.tuple(fc.nat(3), fc.nat(200), fc.boolean()), { maxLength: 4 }),
        (seed, faults) => {
          const entries: TraceEntry[] = [];
          const trace = (entry: unknown): void => void entries.push(entry as TraceEntry);
          const link = { lossRate: 0.05, duplicateRate: 0.1 };
          const run = simulation({ protocol: model(), nodes, seed, delayMs: [1, 30], link, trace });
          for (const node of nodes) run.start(node);
          for (const node of nodes) {
            const command = family.ask(node, 2);
            if (command !== null) run.command(node, command as never);
          }
          for (const [node, afterMs, isKept] of faults) {
            run.run(run.now + afterMs);
            if (run.world.alive.includes(node)) run.crash(node, { journal: isKept ? "kept" : "lost" });
            else run.start(node);
          }
          run.run(run.now + 50);
          const { doubts, snapshot } = replay(model(), nodes, entries as never[]);
          expect(doubts).toEqual([]);
          const states = nodes.map((node) => (run.world.alive.includes(node) ? run.world.state(node) : null));
          expect(snapshot.nodes.map(({ state }) => state)).toEqual(states);
        },
      ),
      { numRuns: 25 },
    );
  });
});

/**
 * Picks a number on command, emits it and sends it to the others. It claims that it is never quiescent with an even
 * sum.
 */
type Dice = {
  state: { sum: number };
  message: { type: "rolled"; number: number };
  command: { type: "roll" };
  event: { type: "says"; word: string };
  timer: "again";
};
const dice: Protocol<Dice> = {
  name: "dice",
  init: () => ({ sum: 0 }),
  start: (_state, ctx) => ctx.setTimer("again", [10, 20]),
  receive: {
    rolled(state, _from, { number }) {
      state.sum += number;
    },
  },
  timeout: { again: (_state, ctx) => ctx.emit({ type: "says", word: "again" }) },
  command: {
    roll(state, _command, ctx) {
      const number = ctx.choose("number", [1, 2, 3]);
      state.sum += number;
      ctx.broadcast({ type: "rolled", number });
    },
  },
  shapes: { message: { rolled: { number: natural } }, command: { roll: {} } },
  source: "none",
  assumes: [],
  properties: [
    {
      name: "odd",
      claim: "at rest, the sum is odd or nothing",
      when: "quiescent",
      holds: ({ alive, state }) => alive.every((node) => state(node).sum % 2 === 1 || state(node).sum === 0),
    },
    {
      name: "three",
      claim: "some node has three",
      when: "sometimes",
      holds: ({ alive, state }) => alive.some((node) => state(node).sum === 3),
    },
    {
      name: "on",
      claim: "a node that begins reaches seven",
      when: "leadsTo",
      given: ({ state }, node: NodeId) => state(node).sum > 0,
      holds: ({ state }, node: NodeId) => state(node).sum > 6,
    },
    {
      name: "end",
      claim: "it ends above five",
      when: "eventually",
      holds: ({ alive, state }) => alive.every((node) => state(node).sum > 5),
    },
  ],
  costs: [],
  view: () => ({ role: "player" }),
};

const entry = (at: number, node: NodeId, rest: object): TraceEntry<Dice> => ({ at, node, ...rest }) as TraceEntry<Dice>;
function roll(at: number, number: number): TraceEntry<Dice>[] {
  const message = { type: "rolled", number };
  return [
    entry(at, 0, { kind: "command", command: { type: "roll" } }),
    entry(at, 0, { kind: "choice", label: "number", option: number }),
    entry(at, 0, { kind: "send", id: `0-${at}`, to: 1, message }),
    entry(at + 1, 1, { kind: "receive", id: `0-${at}`, from: 0, message }),
  ];
}
const starts = [entry(0, 0, { kind: "start" }), entry(0, 1, { kind: "start" })];
const verdicts = (entries: readonly TraceEntry<Dice>[]) =>
  replay(dice, [0, 1], entries).findings.map(({ verdict, entry, node }) => [verdict, entry, node]);

describe("a recording with a Byzantine node raises no doubt wherever it breaks off", () => {
  const liars = byzantine(raft(), new Map([[2, "equivocate"]]));
  const entries: TraceEntry[] = [];
  const run = simulation({
    protocol: liars,
    nodes: [0, 1, 2],
    seed: 3,
    delayMs: [1, 3],
    trace: (entry) => entries.push(entry as TraceEntry),
  });
  for (const node of [0, 1, 2]) run.start(node);
  run.run(1_500);
  const doubtsOf = (some: readonly TraceEntry[]) => replay(liars, [0, 1, 2], some as never[]).doubts;

  it("at once for all nodes, or for one whose process has ended", () => {
    const choices = entries.flatMap(({ kind }, at) => (kind === "choice" ? [at] : []));
    expect(choices.length).toBeGreaterThan(5);
    for (const choice of choices.slice(0, 12))
      for (const end of [choice, choice + 1, choice + 2]) {
        const some = entries.slice(0, end);
        expect(doubtsOf(some), `the first ${end}`).toEqual([]);
        expect(doubtsOf([...some, { at: 1_500, node: 2, kind: "crash" }]), `the first ${end}, and it ends`).toEqual([]);
      }
  });
});

describe("choices and verdicts", () => {
  it("repeats the recorded choices", () => {
    const { snapshot, doubts } = replay(dice, [0, 1], [...starts, ...roll(1, 3), ...roll(5, 2)]);
    expect(doubts).toEqual([]);
    expect(snapshot.nodes.map(({ state }) => state)).toEqual([{ sum: 5 }, { sum: 5 }]);
    const without = [...starts, ...roll(1, 3).filter(({ kind }) => kind !== "choice"), ...roll(5, 1)];
    expect(replay(dice, [0, 1], without).doubts[0]?.sentence).toBe(
      "the handlers choose number, the recording does not",
    );
    const other = roll(1, 7);
    expect(replay(dice, [0, 1], [...starts, ...other]).doubts[0]?.sentence).toContain("the recording has number: 7");
  });

  it("where the recording ends before a choice, any option is possible; where only the choice is missing, none is", () => {
    const [command] = roll(1, 3) as [TraceEntry<Dice>];
    const crash = entry(2, 0, { kind: "crash" });
    for (const entries of [[command], [command, crash], [command, crash, entry(3, 0, { kind: "start" })]])
      expect(replay(dice, [0, 1], [...starts, ...entries]).doubts).toEqual([]);
    const view = entry(1, 0, { kind: "view", view: { role: "player" } });
    for (const more of [view, command])
      expect(replay(dice, [0, 1], [...starts, command, more]).doubts[0]?.sentence).toBe(
        "the handlers choose number, the recording does not",
      );
  });

  it("is quiescent only when nothing is in flight, and leaves open properties unknown at the end", () => {
    expect(verdicts([...starts, ...roll(1, 3)])).toEqual([
      ["holds", null, null],
      ["holds", null, null],
      ["unknown", 2, 0],
      ["unknown", null, null],
    ]);
    expect(verdicts([...starts, ...roll(1, 2)])[0]).toEqual(["violated", 5, null]);
    const overtaken = [...starts, ...roll(1, 2).slice(0, 3), ...roll(2, 1).slice(0, 3)];
    expect(verdicts(overtaken)[0]).toEqual(["holds", null, null]);
    expect(verdicts([...starts, ...roll(1, 3), ...roll(5, 3), ...roll(9, 1)]).map(([verdict]) => verdict)).toEqual([
      "violated",
      "holds",
      "holds",
      "holds",
    ]);
  });

  it("redraws the rest of a random duration above the time that has passed, the same each time", () => {
    const at = [...starts, ...roll(15, 1)];
    const [first, again] = [replay(dice, [0, 1], at), replay(dice, [0, 1], clone(at))];
    expect(first.snapshot).toEqual(again.snapshot);
    for (const { timers } of first.snapshot.nodes) {
      expect(timers[0]?.remainingMs).toBeGreaterThanOrEqual(0);
      expect(timers[0]?.remainingMs).toBeLessThanOrEqual(4);
    }
  });

  it("an idle start runs no handler", () => {
    const idle = [entry(0, 0, { kind: "start", idle: true }), starts[1] as TraceEntry<Dice>];
    const { snapshot } = replay(dice, [0, 1], idle);
    expect(snapshot.nodes.map(({ timers }) => timers.length)).toEqual([0, 1]);
  });
});
