import { describe, expect, it } from "vitest";
import { InvariantViolation } from "../core/errors.ts";
import type { Duration, Protocol } from "../core/protocol.ts";
import { simulation } from "./simulation.ts";

type Waiting = { state: { rang: number }; timer: "bell"; event: { type: "rang" } };

function waiting(duration: Duration, options: readonly string[] = ["once"]) {
  const protocol: Protocol<Waiting> = {
    name: "waiting",
    init: () => ({ rang: 0 }),
    start(_state, ctx) {
      ctx.choose("how often", options);
      ctx.setTimer("bell", duration);
    },
    timeout: {
      bell(state, ctx) {
        state.rang += 1;
        ctx.emit({ type: "rang" });
      },
    },
    shapes: {},
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ rang }) => ({ role: `rang ${rang}` }),
  };
  const rang: number[] = [];
  const sim = simulation<Waiting>({ protocol, nodes: [0], seed: 1, delayMs: 1, onEvent: (at) => rang.push(at) });
  return { sim, rang };
}

describe("a timer", () => {
  it.each<[Duration, string]>([
    [Number.NaN, "NaN"],
    [-50, "-50"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [[10, 1], '"10 to 1"'],
    [[-1, 1], '"-1 to 1"'],
    [[0, Number.NaN], '"0 to NaN"'],
    [[0, Number.POSITIVE_INFINITY], '"0 to Infinity"'],
  ])("of %j is refused", (duration, got) => {
    const { sim } = waiting(duration);
    const expected = `expected the duration of bell to be finite milliseconds of 0 or more, or a range of them, least first, got ${got} (node 0, start, at 0 ms, seed 1)`;
    expect(() => sim.start(0)).toThrow(new InvariantViolation("bad-timer", expected));
  });

  it.each<[Duration, number]>([
    [0, 0],
    [7, 7],
    [[5, 5], 5],
  ])("of %j rings", (duration, at) => {
    const { sim, rang } = waiting(duration);
    sim.start(0);
    sim.run();
    expect(rang).toEqual([at]);
  });
});

it("a choice among nothing is refused", () => {
  const { sim } = waiting(1, []);
  expect(() => sim.start(0)).toThrow("expected the choice “how often” to be among at least one option, got []");
});
