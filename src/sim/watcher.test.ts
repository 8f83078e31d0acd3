import { describe, expect, it } from "vitest";
import type { NodeId, Property, Protocol } from "../core/protocol.ts";
import { simulation } from "./simulation.ts";

/** A lamp at each node. */
type Lamps = {
  state: { lamp: "off" | "on"; due: boolean };
  command: { type: "owe" } | { type: "forget" } | { type: "light" };
};

function stage(properties: readonly Property<Lamps>[], when: "every step" | "at the end" = "every step") {
  const protocol: Protocol<Lamps> = {
    name: "lamps",
    init: () => ({ lamp: "off", due: false }),
    command: {
      owe(state) {
        state.due = true;
      },
      forget(state) {
        state.due = false;
      },
      light(state) {
        state.lamp = "on";
      },
    },
    shapes: { command: { owe: {}, forget: {}, light: {} } },
    source: "none",
    assumes: [],
    properties,
    costs: [],
    view: ({ lamp }) => ({ role: lamp }),
  };
  const sim = simulation({ protocol, nodes: [0, 1], seed: 1, delayMs: 1, properties: when });
  for (const node of [0, 1]) sim.wake(node);
  const tell = (node: NodeId, type: Lamps["command"]["type"], at: number): void => {
    sim.run(at);
    sim.command(node, { type });
  };
  return { sim, tell };
}

const promise: Property<Lamps> = {
  name: "promise",
  claim: "who owes light gives it",
  when: "leadsTo",
  given: ({ state }, node) => state(node).due,
  holds: ({ state }, node) => state(node).lamp === "on",
};
const dark: Property<Lamps> = {
  name: "dark",
  claim: "no lamp is on",
  when: "always",
  holds: ({ alive, state }) => alive.every((node) => state(node).lamp === "off"),
};
const lit: Property<Lamps> = {
  name: "lit",
  claim: "some lamp is on at some time",
  when: "sometimes",
  holds: ({ alive, state }) => alive.some((node) => state(node).lamp === "on"),
};
const bright: Property<Lamps> = {
  name: "bright",
  claim: "all lamps are eventually on",
  when: "eventually",
  holds: ({ alive, state }) => alive.every((node) => state(node).lamp === "on"),
};

describe("a leadsTo", () => {
  it("is due once its condition has held, even briefly, until it is fulfilled", () => {
    const { sim, tell } = stage([promise]);
    tell(1, "owe", 5);
    tell(1, "forget", 9);
    sim.run(20);
    expect(sim.verdict()).toEqual([
      { property: "promise", claim: "who owes light gives it", at: 20, waiting: { node: 1, since: 5 } },
    ]);
    expect(sim.violations).toEqual([]);
    tell(1, "light", 30);
    expect(sim.verdict()).toEqual([]);
  });

  it("names the node that has waited longest", () => {
    const { sim, tell } = stage([promise]);
    tell(1, "owe", 5);
    tell(0, "owe", 6);
    expect(sim.verdict()).toMatchObject([{ waiting: { node: 1, since: 5 } }]);
    tell(1, "light", 7);
    expect(sim.verdict()).toMatchObject([{ waiting: { node: 0, since: 6 } }]);
  });

  it("ends when the node crashes", () => {
    const { sim, tell } = stage([promise]);
    tell(1, "owe", 5);
    sim.crash(1);
    expect(sim.verdict()).toEqual([]);
    sim.start(1);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("an `always` property", () => {
  it("is evaluated after every step, and keeps its first violation", () => {
    const { sim, tell } = stage([dark]);
    tell(0, "light", 3);
    tell(1, "light", 4);
    expect(sim.violations).toEqual([{ property: "dark", claim: "no lamp is on", at: 3 }]);
    sim.crash(0);
    sim.crash(1);
    expect(sim.verdict()).toHaveLength(1);
  });

  it("is evaluated only at the end on request", () => {
    const { sim, tell } = stage([dark, promise], "at the end");
    tell(0, "light", 3);
    tell(1, "owe", 4);
    expect(sim.violations).toEqual([]);
    sim.run(10);
    expect(sim.verdict()).toMatchObject([
      { property: "dark", at: 10 },
      { property: "promise", waiting: { node: 1, since: 10 } },
    ]);
  });
});

it("a `sometimes` property is noticed when it comes true, and not before", () => {
  const { sim, tell } = stage([lit]);
  tell(1, "owe", 1);
  expect([...sim.seen]).toEqual([]);
  tell(1, "light", 2);
  sim.crash(1);
  expect([...sim.seen]).toEqual(["lit"]);
  expect(sim.verdict()).toEqual([]);
});

it("an `eventually` property counts when the verdict is read", () => {
  const { sim, tell } = stage([bright]);
  tell(0, "light", 1);
  expect(sim.verdict()).toEqual([{ property: "bright", claim: "all lamps are eventually on", at: 1 }]);
  tell(1, "light", 2);
  expect(sim.verdict()).toEqual([]);
});
