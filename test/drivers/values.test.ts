/**
 * Checks that messages, commands, records and events are values in all drivers. The order of an object's keys is part
 * of the value.
 */
import { describe, expect, it } from "vitest";
import { explore, walk } from "../../src/check/index.ts";
import type { Property } from "../../src/core/index.ts";
import { simulation, type TraceEntry } from "../../src/sim/index.ts";
import { hostsInMemory } from "./hosts-in-memory.ts";
import { type Changing, changesWhatItGot, changesWhatItSent, goesThroughKeys, type Naming } from "./toys.ts";

type Toy = typeof changesWhatItSent;
const nodes = [0, 1, 2] as const;
const begin = { type: "begin", list: [5] } as const;
/** The final result: the states of all nodes, the events of 0, and the records in its journal. */
interface Ending {
  readonly states: readonly (Changing["state"] | null)[];
  readonly emitted: readonly unknown[];
}

const sent = { own: [1, 2, 3], got: [], noted: [] };
const got = [[1], [1], [1, 2], [1, 2]];
const endings: Record<string, { toy: Toy; ending: Ending; noted: number[][] }> = {
  "changes a value after sending it": {
    toy: changesWhatItSent,
    ending: {
      states: [sent, { own: [], got, noted: [] }, { own: [], got: [[1], [1, 2]], noted: [] }],
      emitted: [
        { type: "sent", list: [1] },
        { type: "sent", list: [1, 2] },
      ],
    },
    noted: [[1], [1, 2]],
  },
  "changes a value that it received": {
    toy: changesWhatItGot,
    ending: {
      states: [
        { own: [5, 7], got: [], noted: [] },
        { own: [], got: [[5, 7, 1]], noted: [] },
        { own: [], got: [[5, 7, 2]], noted: [] },
      ],
      emitted: [],
    },
    noted: [[5, 7, 8]],
  },
};

describe.each(Object.entries(endings))("a protocol that %s", (_name, { toy, ending, noted }) => {
  it.each([true, false])("in the simulator, traced: %s", (isTraced) => {
    const entries: TraceEntry<Changing>[] = [];
    const trace = isTraced ? { trace: (entry: TraceEntry<Changing>) => void entries.push(entry) } : {};
    const sim = simulation({ protocol: toy, nodes: [...nodes], seed: 1, delayMs: 1, ...trace });
    for (const node of nodes) sim.wake(node);
    sim.command(0, begin as never);
    sim.run();
    expect({ states: nodes.map(sim.world.state), emitted: sim.events(0) }).toEqual(ending);
    expect(sim.violations).toEqual([]);
    for (let again = 0; again < 2; again++) {
      sim.crash(0);
      sim.wake(0);
      expect(sim.world.state(0).noted).toEqual(noted);
    }
    const received = entries.filter((entry) => entry.kind === "receive" && entry.node === 2);
    const lists = received.map((entry) => (entry as unknown as { message: { list: number[] } }).message.list);
    if (isTraced) expect(lists).toEqual(toy === changesWhatItSent ? [[1], [1, 2]] : [[5, 7]]);
  });

  it("in the simulator, with every message duplicated", () => {
    const sim = simulation({ protocol: toy, nodes: [...nodes], seed: 1, delayMs: 1, link: { duplicateRate: 1 } });
    for (const node of nodes) sim.wake(node);
    sim.command(0, begin as never);
    sim.run();
    expect(sim.world.state(2).got).toHaveLength(toy === changesWhatItSent ? 4 : 2);
    expect(sim.violations).toEqual([]);
  });

  it("in the checker", () => {
    const isAt = (states: Ending["states"]): Property<Changing> => ({
      name: "ending",
      claim: "it ends as it should",
      when: "sometimes",
      holds: ({ alive, state }) => alive.length === 3 && JSON.stringify(alive.map(state)) === JSON.stringify(states),
    });
    const asks = (node: number) => (node === 0 ? [begin as never] : []);
    const system = { protocol: toy, nodes: [...nodes], network: "fifo", timers: "never", begin: "idle", asks } as const;
    const properties = [...toy.properties, isAt(ending.states)];
    const found = explore({ ...system, properties });
    expect([found.verdict, found.property?.name]).toEqual(["holds", undefined]);
    const said = found.witnesses[0]?.path.flatMap(({ events }) => events);
    expect(said).toEqual(ending.emitted);
    // Crash and recover twice, so that the journal is read twice.
    const isRead: Property<Changing> = {
      name: "journal",
      claim: "the journal contains the recorded values",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) => ["[]", JSON.stringify(noted)].includes(JSON.stringify(state(node).noted))),
    };
    const twice = explore({ ...system, crashes: 2, recoveries: 2, properties: [...toy.properties, isRead] });
    expect([twice.verdict, twice.property?.name]).toEqual(["holds", undefined]);
    const walked = walk({
      ...system,
      crashes: 2,
      recoveries: 2,
      properties: [isRead],
      strategy: "random",
      seed: 1,
      runs: 50,
    });
    expect(walked.violatingRun).toBe(null);
  });

  it("on hosts, which exchange bytes", async () => {
    const { hosts, events, state, deliver, restart } = hostsInMemory(toy, [...nodes]);
    hosts.get(0)?.command(begin);
    await new Promise((done) => setImmediate(done)); // Wait for output that the journal holds back.
    deliver();
    expect({ states: nodes.map(state), emitted: events.get(0) }).toEqual(ending);
    for (let again = 0; again < 2; again++) {
      await restart(0);
      expect(state(0).noted).toEqual(noted);
    }
    expect(begin.list).toEqual([5]);
  });
});

describe("a protocol that goes through the keys of an object", () => {
  const say = (name: "a" | "b"): Naming["command"] => ({ type: "say", name });

  it("in the simulator takes the first one, in either order", () => {
    const firsts = new Set<string | null>();
    for (let seed = 0; seed < 20; seed++) {
      const sim = simulation({ protocol: goesThroughKeys, nodes: [...nodes], seed, delayMs: [1, 9] });
      for (const node of nodes) sim.wake(node);
      sim.command(1, say("a"));
      sim.command(2, say("b"));
      sim.run();
      firsts.add(sim.world.state(0).first);
      expect(sim.violations).toEqual([]);
    }
    expect(firsts).toEqual(new Set(["a", "b"]));
  });

  it("in the checker too: states that differ in the order of keys are different", () => {
    const asks = (node: number) => (node === 0 ? [] : [say(node === 1 ? "a" : "b")]);
    const network = { network: "fifo", timers: "never", begin: "idle" } as const;
    const found = explore({ protocol: goesThroughKeys, nodes: [...nodes], ...network, asks });
    expect([found.verdict, found.property?.name]).toEqual(["holds", undefined]);
    expect(found.witnesses.map(({ property }) => property.name).sort()).toEqual(["a first", "b first"]);
  });

  it.each([
    ["a", [1, 2]],
    ["b", [2, 1]],
  ] as const)("on hosts: %s, if it comes first", async (first, order) => {
    const { hosts, state, deliver } = hostsInMemory(goesThroughKeys, [...nodes]);
    for (const node of order) hosts.get(node)?.command(say(node === 1 ? "a" : "b"));
    deliver();
    await new Promise((done) => setImmediate(done)); // Wait until node 0 receives its message to itself.
    expect(state(0)).toMatchObject({ first, fields: ["type", "name", "number"] });
  });
});
