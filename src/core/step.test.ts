import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bully, bully } from "../protocols/election/bully/bully.ts";
import { type MonitoredBully, monitoredBully } from "../protocols/election/monitored.ts";
import { clone, equal } from "./plain.ts";
import type { StateOf } from "./protocol.ts";
import { type Stimulus, step } from "./step.ts";

const node = { self: 1, peers: [0, 2, 3] };
const protocol = monitoredBully();

const election = fc.constantFrom<MonitoredBully["message"] & { type: "election" }>(
  ...(["election", "answer", "coordinator", "resign"] as const).map((type) => ({
    type: "election" as const,
    body: { type },
  })),
);
const alive = fc.nat(20).map((beat) => ({ type: "detector" as const, body: { type: "alive" as const, beat } }));
const stimulus: fc.Arbitrary<Stimulus<MonitoredBully>> = fc.oneof(
  fc.constant({ kind: "start" as const }),
  fc.record({
    kind: fc.constant("receive" as const),
    from: fc.constantFrom(...node.peers),
    message: fc.oneof(election, alive),
  }),
  fc.record({
    kind: fc.constant("timeout" as const),
    timer: fc.constantFrom("detector.beat" as const, "election.answer" as const, "election.coordinator" as const),
  }),
  fc.record({
    kind: fc.constant("command" as const),
    command: fc.oneof(
      fc.constantFrom(...node.peers).map((suspect) => ({
        type: "election" as const,
        body: { type: "suspect" as const, node: suspect },
      })),
      fc.constantFrom("call" as const, "resign" as const, "stand" as const).map((type) => ({
        type: "election" as const,
        body: { type },
      })),
    ),
  }),
);

/** Freezes data deeply, so that code that changes it throws. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null) for (const item of Object.values(value)) frozen(item);
  return Object.freeze(value);
}

describe("step is pure", () => {
  it("leaves state and stimulus unchanged, and equal inputs give equal outputs", () => {
    fc.assert(
      fc.property(fc.array(stimulus, { maxLength: 40 }), (stimuli) => {
        let state: StateOf<MonitoredBully> = protocol.init(node.self, node.peers);
        for (const each of stimuli) {
          const before = clone(state);
          const once = step(protocol, node, frozen(state), frozen(each));
          const twice = step(protocol, node, state, each);
          expect(equal(state, before)).toBe(true);
          expect(twice).toEqual(once);
          state = once.state;
        }
      }),
    );
  });

  it("frozen inputs expose a handler that changes them", () => {
    const state = frozen(bully().init(1, [2]));
    expect(() => {
      state.phase = "campaigning";
    }).toThrow(TypeError);
  });

  it("records effects in the order of the handler", () => {
    const { effects } = step<Bully>(bully(), node, bully().init(1, node.peers), { kind: "start" });
    expect(effects.map((effect) => effect.kind)).toEqual(["send", "send", "cancelTimer", "setTimer"]);
  });

  it("asks the given chooser, and records its choice", () => {
    const coin = {
      name: "coin",
      init: () => ({ side: "" }),
      start(state: { side: string }, ctx: { choose<T>(label: string, options: readonly T[]): T }) {
        state.side = ctx.choose("side", ["heads", "tails"]);
      },
      shapes: {},
      source: "none",
      assumes: [],
      properties: [],
      costs: [],
      view: () => ({ role: "coin" }),
    };
    const toss = step<{ state: { side: string } }>(
      coin,
      { self: 0, peers: [] },
      { side: "" },
      { kind: "start" },
      (_label, options) => options.at(-1) as (typeof options)[number],
    );
    expect(toss).toEqual({ state: { side: "tails" }, effects: [{ kind: "choose", label: "side", option: "tails" }] });
  });

  it("names the missing handler", () => {
    const stray = { kind: "timeout", timer: "lunch" } as unknown as Stimulus<Bully>;
    expect(() => step<Bully>(bully(), node, bully().init(1, node.peers), stray)).toThrow(
      'bully has no timeout handler for "lunch"',
    );
  });
});
