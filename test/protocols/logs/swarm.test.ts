/** Runs every replicated log of the registry under random faults in virtual time. */
import { describe, expect, test } from "vitest";
import { replicated } from "../../../src/protocols/consensus/family/systems.ts";
import { firstSeed } from "../../random-seeds.ts";
import { logs } from "./logs.ts";
import { primaryLog } from "./primary-log.ts";
import { type LogUnderTest, swarm } from "./swarm.ts";

const FEW = 4;
const { COTERIE_SEED: replayed, COTERIE_SEEDS: count } = process.env;

/** The number of reported failures. Any others usually have the same cause. */
const MAX_FAILURES = 5;

function underSeeds(log: LogUnderTest, first: number, last: number): void {
  const sums = new Map<string, number>();
  const failures: string[] = [];
  let slowestMs = 0;
  for (let seed = first; seed <= last && failures.length < MAX_FAILURES; seed++) {
    try {
      const { wellAfterMs, reached, ...counts } = swarm(log, seed);
      for (const [what, count] of Object.entries({ ...counts, ...reached }))
        sums.set(what, (sums.get(what) ?? 0) + count);
      slowestMs = Math.max(wellAfterMs, slowestMs);
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  const counts = [...sums].map(([what, sum]) => `${what} ${sum}`).join(", ");
  if (last - first >= 2 * FEW)
    console.log(
      `${log.name}: seeds ${first} to ${last}, ${counts}; recovered after ${slowestMs.toFixed(0)} ms at most`,
    );
  expect(failures.join("\n")).toBe("");
  for (const what of ["acknowledged", "faults"]) expect(sums.get(what), what).toBeGreaterThan(0);
}

describe.each(logs.map((log) => [log.name, log] as const))("%s under random faults", (_name, log) => {
  test("is linearizable, keeps its properties at every step, and answers every request after all faults have ended", () =>
    replayed === undefined
      ? underSeeds(log, firstSeed(), firstSeed() + FEW - 1)
      : underSeeds(log, Number(replayed), Number(replayed)));

  test("the same for the number of seeds in COTERIE_SEEDS", { tags: ["larger"] }, () =>
    underSeeds(log, firstSeed(), firstSeed() + Number(count) - 1),
  );
});

test("judges a history with mostly unanswered appends by their final order", () => {
  const fast = logs.find(({ name }) => name === "fast-paxos") as LogUnderTest;
  // 9 of 23 operations are answered. Without that order, the search gives no result after two million steps.
  expect(swarm(fast, 219)).toMatchObject({ acknowledged: 9, operations: 23, steps: 13 });
});

describe("the primary log, whose links lose nothing", () => {
  const toy = (forgets: boolean): LogUnderTest => ({
    name: "primary-log",
    make: (options) => replicated(() => primaryLog({ forgets }), options) as never,
    nodes: 3,
    draw: () => ({ log: {}, clocks: [0.5, 2] }),
    needsReliableLinks: true,
  });

  test("passes, too", () => underSeeds(toy(false), 3, 4));

  test("fails if the primary forgets its order", () => {
    expect(() => underSeeds(toy(true), 1, 8)).toThrow(/primary-log, seed \d+: /);
  });
});
