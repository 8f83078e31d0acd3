import { describe, expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { natural } from "../core/shape.ts";
import { bully } from "../protocols/election/bully/bully.ts";
import { explore } from "./explore.ts";
import { mutexModel, ringModel } from "./reference-models.ts";

describe("exploration reproduces SPIN's counts, minus the one state before SPIN's init", () => {
  it.each([
    ["Chang–Roberts", 8, ringModel(8), 7_060, 36_124],
    ["Chang–Roberts", 9, ringModel(9), 15_148, 90_895],
    ["Chang–Roberts", 11, ringModel(11), 185_597, 1_215_460],
    ["Ricart–Agrawala, one entry each, of", 3, mutexModel(3, 1), 5_772, 10_942],
  ])("%s %i", (_name, _nodes, model, states, transitions) => {
    expect(explore(model as never)).toMatchObject({ verdict: "holds", states, transitions });
  });
});

/** Two nodes that each toss a coin, journal it, send it, and may crash. */
type Coins = {
  state: { own: number; heard: number };
  message: { type: "tossed"; side: number };
  record: { type: "side"; side: number };
};
const coins = (property: (own: number, heard: number) => boolean): Protocol<Coins> => ({
  name: "coins",
  init: () => ({ own: -1, heard: -1 }),
  start(state, ctx) {
    if (state.own < 0) {
      state.own = ctx.choose("side", [0, 1]);
      ctx.persist({ type: "side", side: state.own });
    }
    ctx.broadcast({ type: "tossed", side: state.own });
  },
  receive: {
    tossed(state, _from, { side }) {
      state.heard = side;
    },
  },
  replay: {
    side(state, { side }) {
      state.own = side;
    },
  },
  shapes: { message: { tossed: { side: natural } }, record: { side: { side: natural } } },
  source: "none",
  assumes: [],
  properties: [
    {
      name: "as asked",
      claim: "of every node",
      when: "always",
      holds: ({ alive, state }) => alive.every((node) => property(state(node).own, state(node).heard)),
    },
  ],
  costs: [],
  view: () => ({ role: "tosser" }),
});
const two = { nodes: [0, 1], network: "fifo", timers: "free", begin: "down" } as const;

describe("exploration", () => {
  it("explores every choice", () => {
    for (const [own, heard] of [
      [0, 0],
      [0, 1],
      [1, 0],
      [1, 1],
    ]) {
      const { verdict, path } = explore({ ...two, protocol: coins((o, h) => o !== own || h !== heard) });
      expect(verdict).toBe("violated");
      expect(path.map(({ move }) => move.kind)).toEqual(["start", "start", "receive"]);
    }
    expect(explore({ ...two, protocol: coins((own) => own < 2) }).verdict).toBe("holds");
  });

  it("drops messages in flight to a crashed node, and keeps its journal", () => {
    const faults = { crashes: 1, recoveries: 1 };
    const protocol = coins(() => true);
    // Without replay, a node tosses again, so states appear that a journal rules out.
    const forgetful = { ...protocol, replay: { side: () => undefined } };
    const kept = explore({ ...two, ...faults, protocol }).states;
    expect(kept).toBeGreaterThan(explore({ ...two, protocol }).states);
    expect(explore({ ...two, ...faults, protocol: forgetful }).states).toBeGreaterThan(kept);
  });

  it("reaching a bound makes the verdict unknown, never a pass", () => {
    const protocol = coins(() => true);
    expect(explore({ ...two, protocol, maxStates: 3 })).toMatchObject({ verdict: "unknown", states: 3 });
    const stopped = explore({ ...ringModel(9), mayGoOn: () => false });
    expect(stopped.verdict).toBe("unknown");
    expect(stopped.states).toBeLessThan(15_148);
    const light = explore({ ...ringModel(9), maxBytes: 100_000 });
    expect(light.verdict).toBe("unknown");
    expect(light.states).toBeLessThan(15_148);
    expect(explore({ ...ringModel(9), maxBytes: 10_000_000 })).toMatchObject({ verdict: "holds", states: 15_148 });
  });

  it("an old leader starts while another declares itself: the shortest run to two leaders, 7 steps", () => {
    const nodes = [0, 1, 2];
    const { verdict, property, path } = explore({
      protocol: bully(),
      nodes,
      network: "fifo",
      timers: "free",
      begin: "down",
    });
    expect([verdict, property?.name]).toEqual(["violated", "E1 safety"]);
    expect(path.length).toBeLessThanOrEqual(10);
    expect(path.at(-1)?.states.map((state) => state?.leader)).toEqual([1, 2, 2]);
  });

  it("deliveries in order except for some delays: each further delay allows more runs, and many allow all", () => {
    const protocol = coins(() => true);
    const count = (delays: number): number =>
      explore({ ...two, begin: "together", protocol, delays, properties: [] }).transitions;
    expect([0, 1, 2, 9].map(count)).toEqual([14, 22, 22, 22]);
  });

  it("a delivery order rejects properties of whole runs", () => {
    const model = ringModel(3) as unknown as Parameters<typeof explore>[0];
    const properties = [{ name: "eventually bright", claim: "", when: "eventually", holds: () => true }] as const;
    expect(() => explore({ ...model, properties, delays: 0 })).toThrow(
      'expected delays to be combined only with properties of single states, got "eventually bright": remove it from properties, or do not set delays',
    );
  });
});
