import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantViolation } from "../core/errors.ts";
import type { Duration, Protocol } from "../core/protocol.ts";
import { random } from "../core/random.ts";
import { type Delay, sampler } from "./delay.ts";
import { simulation } from "./simulation.ts";

const drawn = (delay: Delay, count: number, seed = 1): number[] => {
  const sample = sampler(delay, random(seed), "delay");
  return Array.from({ length: count }, sample);
};
const mean = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
const deviation = (numbers: readonly number[]): number => {
  const middle = mean(numbers);
  return Math.sqrt(mean(numbers.map((each) => (each - middle) ** 2)));
};
const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[numbers.length >> 1] as number;

describe("delays", () => {
  it("a constant is exact, and draws no randomness", () => {
    const source = random(1);
    const sample = sampler(7, source, "delay");
    expect([sample(), sample()]).toEqual([7, 7]);
    expect(source.bits()).toBe(random(1).bits());
  });

  it("uniform delays fill their range evenly", () => {
    const delays = drawn([10, 20], 20_000);
    expect(delays.every((each) => each >= 10 && each < 20)).toBe(true);
    expect(mean(delays)).toBeCloseTo(15, 1);
    expect(deviation(delays)).toBeCloseTo(10 / Math.sqrt(12), 1);
  });

  it("normal delays have their mean and deviation, and the right share within one and two deviations", () => {
    const delays = drawn({ normal: { meanMs: 100, deviationMs: 10 } }, 40_000);
    expect(mean(delays)).toBeCloseTo(100, 0);
    expect(deviation(delays)).toBeCloseTo(10, 0);
    const within = (distance: number): number => mean(delays.map((each) => (Math.abs(each - 100) <= distance ? 1 : 0)));
    expect(within(10)).toBeCloseTo(0.683, 1);
    expect(within(20)).toBeCloseTo(0.954, 1);
  });

  it("normal delays below 0 count as 0", () => {
    const delays = drawn({ normal: { meanMs: 1, deviationMs: 10 } }, 1_000);
    expect(Math.min(...delays)).toBe(0);
    expect(delays.filter((each) => each === 0).length / 1_000).toBeCloseTo(0.46, 1);
  });

  it("log-normal delays have their median, and logarithms with their deviation", () => {
    const delays = drawn({ logNormal: { medianMs: 50, sigma: 0.5 } }, 40_000);
    expect(median(delays)).toBeCloseTo(50, -1);
    const logarithms = delays.map((each) => Math.log(each / 50));
    expect(mean(logarithms)).toBeCloseTo(0, 1);
    expect(deviation(logarithms)).toBeCloseTo(0.5, 1);
  });

  it("log-normal delays with a large sigma stay finite and above 0", () => {
    fc.assert(
      fc.property(fc.integer(), fc.double({ min: 0, max: 8, noNaN: true }), (seed, sigma) => {
        for (const each of drawn({ logNormal: { medianMs: 1, sigma } }, 10, seed)) {
          expect(each).toBeGreaterThan(0);
          expect(Number.isFinite(each)).toBe(true);
        }
      }),
    );
  });

  // Implementations of Math.log and Math.exp may differ, but this must not be visible in a run.
  it("equal seeds give exactly these bits", () => {
    expect(drawn({ normal: { meanMs: 10, deviationMs: 2 } }, 3)).toMatchInlineSnapshot(`
      [
        8.832421496859622,
        10.467229449146725,
        10.19257671456514,
      ]
    `);
    expect(drawn({ logNormal: { medianMs: 10, sigma: 1 } }, 3)).toMatchInlineSnapshot(`
      [
        5.577807853584652,
        12.631577348107768,
        11.01076521654851,
      ]
    `);
  });

  it.each<[unknown, string]>([
    [-1, "expected delayMs to be a finite number >= 0, got -1"],
    [[5, 1], "expected delayMs to be [least, most] with 0 <= least <= most, got [5,1]"],
    [
      { normal: { meanMs: 1, deviationMs: -1 } },
      "expected delayMs.normal.deviationMs to be a finite number >= 0, got -1",
    ],
    [{ logNormal: { sigma: 1 } }, "expected delayMs.logNormal.medianMs to be a finite number >= 0, got undefined"],
    [
      { pareto: 1 },
      'expected delayMs to be milliseconds, [least, most], { normal } or { logNormal }, got {"pareto":1}',
    ],
  ])("rejects %j", (delay, complaint) => {
    expect(() => sampler(delay as Delay, random(1), "delayMs")).toThrow(complaint);
  });
});

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
    [Number.POSITIVE_INFINITY, "Infinity"],
    [[10, 1], '"10 to 1"'],
    [[0, Number.POSITIVE_INFINITY], '"0 to Infinity"'],
  ])("of %j is rejected", (duration, got) => {
    const { sim } = waiting(duration);
    const expected = `expected the duration of bell to be a finite number of milliseconds, at least 0, or a range of two such numbers, smallest first, got ${got} (node 0, start, at 0 ms, seed 1)`;
    expect(() => sim.start(0)).toThrow(new InvariantViolation("bad-timer", expected));
  });
});

it("rejects a choice without options", () => {
  const { sim } = waiting(1, []);
  expect(() => sim.start(0)).toThrow("expected the options of “how often” to be a non-empty list, got []");
});
