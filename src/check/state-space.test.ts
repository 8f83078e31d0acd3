import { describe, expect, it } from "vitest";
import { bully } from "../protocols/election/bully/bully.ts";
import { extendedChangRoberts } from "../protocols/election/chang-roberts/extended-chang-roberts.ts";
import { Model, type ModelOptions } from "./model.ts";
import { mutexModel, ringModel } from "./reference-models.ts";
import { StateSpace } from "./state-space.ts";

const three = { nodes: [0, 1, 2], network: "fifo", timers: "free", begin: "down" } as const;
const elects = { ...three, protocol: bully() };
const ring = { ...three, protocol: extendedChangRoberts({ ring: [0, 1, 2] }), asks: () => [{ type: "call" as const }] };

/** Systems for each kind of caching: by configuration, not at all, or only from some state on. */
const systems: Record<string, ModelOptions<never>> = {
  "a ring with one queue for each link": ringModel(7) as never,
  "nodes with one inbox each": mutexModel(3, 1) as never,
  "messages without order": { ...mutexModel(2, 3), network: "bag" } as never,
  "nodes that start at any time": elects as never,
  "nodes that begin together": { ...elects, begin: "together" } as never,
  "time-outs that wait for silence": { ...elects, timers: "quiet" } as never,
  "scripts of commands": ring as never,
  "crashes, recoveries and losses": { ...elects, timers: "quiet", crashes: 1, recoveries: 1, losses: 1 } as never,
  "a bound on messages on their way": { ...elects, maxInFlight: 3 } as never,
};

const MOST = 6_000;

/** Finds states and transitions with the model alone, without caches. Returns at most `MOST`. */
function plainly(model: Model<never>): { states: string[]; transitions: string[] } {
  const first = model.initial();
  const ids = new Map([[first.join(), 0]]);
  const tuples = [first];
  const transitions: string[] = [];
  for (let id = 0; id < tuples.length && tuples.length < MOST; id++) {
    model.expand(tuples[id] as Int32Array, () => {
      const key = model.next.join();
      if (!ids.has(key)) {
        ids.set(key, tuples.length);
        tuples.push(model.next.slice());
      }
      transitions.push(`${id} → ${ids.get(key)}`);
      return false;
    });
  }
  return { states: [...ids.keys()], transitions };
}

describe("cached steps lead to the same states, by the same transitions, in the same order as the model", () => {
  it.each(Object.entries(systems))("with %s", (_name, options) => {
    const model = new Model(options);
    const expected = plainly(model);
    const transitions: string[] = [];
    const space: StateSpace<never> = new StateSpace(model, (parent, words, at, hash) => {
      const added = space.store.addPacked(words, at, hash);
      transitions.push(`${parent} → ${added < 0 ? ~added : added}`);
      return false;
    });
    space.add(model.initial());
    // Reading the size after each state forces the computation of the successors.
    for (let id = 0; id < space.size && space.size < MOST; id++) {
      space.expand(id);
      space.settle();
    }
    expect(space.size).toBeGreaterThan(20);
    const tuple = new Int32Array(model.width);
    const states = Array.from({ length: space.size }, (_, id) => {
      space.read(id, tuple);
      return `${tuple.join()} is ${space.find(tuple)}`;
    });
    expect(states).toEqual(expected.states.map((key, id) => `${key} is ${id}`));
    expect(transitions).toEqual(expected.transitions);
    tuple.fill(12_345);
    expect(space.find(tuple)).toBe(-1);
  });
});

it("ends when the arrival callback returns true", () => {
  let arrived = 0;
  const model = new Model(ringModel(5));
  const space = new StateSpace(model, () => ++arrived === 2);
  space.add(model.initial());
  expect([space.expand(0), space.settle(), arrived]).toEqual([false, true, 2]);
});
