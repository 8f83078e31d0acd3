/** Checks, in all drivers, nodes whose parts all write to the journal and replace their own records. */
import { describe, expect, it } from "vitest";
import { explore } from "../../src/check/index.ts";
import {
  type Assembly,
  assemble,
  list,
  natural,
  type Property,
  type Protocol,
  step,
  type Wires,
} from "../../src/core/index.ts";
import { simulation, type TraceEntry } from "../../src/sim/index.ts";
import { replay } from "../../src/trace/replay.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";

/** A part that records its commands and truncates the front of its log. */
type Log = {
  state: { kept: number[] };
  command: { type: "keep"; number: number } | { type: "cut"; left: number };
  record: { type: "kept"; number: number } | { type: "snapshot"; kept: number[] };
};

function log(name: string): Protocol<Log> {
  return {
    name,
    init: () => ({ kept: [] }),
    command: {
      keep(state, { number }, ctx) {
        state.kept.push(number);
        ctx.persist({ type: "kept", number });
      },
      cut(state, { left }, ctx) {
        const [last = 0] = state.kept.splice(0, state.kept.length, ...state.kept.slice(-left)).slice(-1);
        ctx.compact([
          { type: "snapshot", kept: state.kept.slice(0, -1) },
          { type: "kept", number: last },
        ]);
      },
    },
    replay: {
      kept: (state, { number }) => void state.kept.push(number),
      snapshot: (state, { kept }) => void state.kept.push(...kept),
    },
    shapes: {
      command: { keep: { number: natural }, cut: { left: natural } },
      record: { kept: { number: natural }, snapshot: { kept: list(natural, 100) } },
    },
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ kept }) => ({ role: `${kept.length} kept` }),
  };
}

type Inner = { first: Log; second: Log };
type Outer = { inner: Assembly<Inner>; beside: Log };
type Node = Assembly<Outer>;
const inner = assemble<Inner>("two logs", { first: log("first"), second: log("second") }, {}, { face: "first" });
const node: Protocol<Node> = assemble<Outer>(
  "three logs",
  { inner, beside: log("beside") },
  {} satisfies Wires<Outer>,
  { face: "inner" },
);

const first = (body: Log["command"]) => ({ type: "inner" as const, body: { type: "first" as const, body } });
const second = (body: Log["command"]) => ({ type: "inner" as const, body: { type: "second" as const, body } });
const beside = (body: Log["command"]) => ({ type: "beside" as const, body });
const keep = (number: number) => ({ type: "keep" as const, number });
const commands: Node["command"][] = [
  first(keep(1)),
  second(keep(11)),
  beside(keep(21)),
  first(keep(2)),
  first(keep(3)),
  beside(keep(22)),
  first({ type: "cut", left: 2 }),
  second(keep(12)),
  first(keep(4)),
  beside({ type: "cut", left: 1 }),
];
const ending: Node["state"] = {
  inner: { first: { kept: [2, 3, 4] }, second: { kept: [11, 12] } },
  beside: { kept: [22] },
};
/**
 * The number of remaining records: `first` has a snapshot, a number and the next one, `second` has two records, and
 * `beside` has a snapshot and a number.
 */
const LEFT = 7;

describe("parts that replace their journal records leave the records of other parts alone", () => {
  it("by name: an assembly has a slot for each part that writes to the journal, at any depth", () => {
    expect(node.slots).toEqual(["inner.first", "inner.second", "beside"]);
    expect(inner.slots).toEqual(["first", "second"]);
    expect(assemble<{ only: Log }>("one", { only: log("only") }, {}, { face: "only" }).slots).toEqual(["only"]);
  });

  it("in the simulator, and its replayed trace", () => {
    const entries: TraceEntry<Node>[] = [];
    const trace = (entry: TraceEntry<Node>): void => void entries.push(entry);
    const sim = simulation({ protocol: node, nodes: [0, 1], seed: 1, delayMs: 1, trace });
    for (const self of [0, 1]) sim.wake(self);
    for (const command of commands) sim.command(0, command);
    for (let again = 0; again < 2; again++) {
      sim.crash(0);
      sim.wake(0);
      sim.run();
      expect(sim.world.state(0)).toEqual(ending);
    }
    const replayed = replay(node, [0, 1], entries);
    expect(replayed.doubts).toEqual([]);
    expect(replayed.snapshot.nodes[0]?.journal).toHaveLength(LEFT);
  });

  it("in the simulator: a compaction that was not durable brings back the replaced records of its part only", () => {
    const sim = simulation({ protocol: node, nodes: [0, 1], seed: 1, delayMs: 1, syncMs: 10 });
    for (const self of [0, 1]) sim.wake(self);
    for (const command of [first(keep(1)), second(keep(11)), second(keep(12))]) sim.command(0, command);
    sim.run(20);
    sim.command(0, first(keep(2)));
    sim.command(0, second({ type: "cut", left: 1 }));
    sim.crash(0, { journal: "synced" });
    sim.wake(0);
    expect(sim.world.state(0).inner).toEqual({ first: { kept: [1] }, second: { kept: [11, 12] } });
  });

  it("in the checker", () => {
    const whole: Property<Node> = {
      name: "whole",
      claim: "a restarted node finds a prefix of its steps",
      when: "always",
      holds: ({ alive, state }) => alive.every((self) => self === 1 || beginnings.has(JSON.stringify(state(self)))),
    };
    const asks = (self: number): Node["command"][] => (self === 0 ? commands : []);
    const system = { protocol: node, nodes: [0, 1], network: "fifo", timers: "never", begin: "idle", asks } as const;
    const found = explore({ ...system, crashes: 2, recoveries: 2, properties: [whole] });
    expect([found.verdict, found.property?.name]).toEqual(["holds", undefined]);
  });

  it("on hosts", async () => {
    const { hosts, state, restart } = hostsInMemory(node, [0, 1]);
    for (const command of commands) hosts.get(0)?.command(command);
    for (let again = 0; again < 2; again++) {
      await restart(0);
      expect(state(0)).toEqual(ending);
    }
  });
});

/** The successive states of the node, as JSON. */
const beginnings = new Set([JSON.stringify(node.init(0, [1]))]);
let state = node.init(0, [1]);
for (const command of commands) {
  state = step(node, { self: 0, peers: [1] }, state, { kind: "command", command }).state;
  beginnings.add(JSON.stringify(state));
}
