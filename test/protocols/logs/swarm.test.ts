/** Every replicated log of the registry under random faults in virtual time. */
import { describe, expect, test } from "vitest";
import { replicated } from "../../../src/protocols/consensus/family/systems.ts";
import { logs } from "./logs.ts";
import { primaryLog } from "./primary-log.ts";
import { type LogUnderTest, swarm } from "./swarm.ts";

const FEW = 8;
/** `COTERIE_SWARM=10000 npx vitest run --project unit test/protocols/logs -t 'very many'` tries more. */
const MANY = Number(process.env.COTERIE_SWARM ?? 300);
const { COTERIE_SEED: replayed } = process.env;

function underSeeds(log: LogUnderTest, first: number, last: number): void {
  const sums = { acknowledged: 0, faults: 0 };
  let slowestMs = 0;
  for (let seed = first; seed <= last; seed++) {
    const { acknowledged, faults, wellAfterMs } = swarm(log, seed);
    sums.acknowledged += acknowledged;
    sums.faults += faults;
    slowestMs = Math.max(wellAfterMs, slowestMs);
  }
  if (last - first >= FEW)
    console.log(
      `${log.name}: ${last - first + 1} seeds, ${sums.acknowledged} operations answered, ${sums.faults} faults, well after ${slowestMs.toFixed(0)} ms at most`,
    );
  for (const sum of Object.values(sums)) expect(sum).toBeGreaterThan(0);
}

describe.each(logs.map((log) => ({ name: log.name, log })))("$name under random faults", ({ log }) => {
  test("is linearizable, keeps its properties at every step, and answers all once it is well", () =>
    replayed === undefined ? underSeeds(log, 1, FEW) : underSeeds(log, Number(replayed), Number(replayed)));

  test("the same under very many seeds", { tags: ["long"], timeout: 36_000_000 }, () => underSeeds(log, FEW + 1, MANY));
});

describe("the toy, whose links lose nothing", () => {
  const toy = (forgets: boolean): LogUnderTest => ({
    name: "primary-log",
    make: (options) => replicated(() => primaryLog({ forgets }), options) as never,
    nodes: 3,
    draw: () => ({ log: {}, clocks: [0.5, 2] }),
    needsReliableLinks: true,
  });

  test("is well, too", () => underSeeds(toy(false), 3, 4));

  test("one that forgets its order is found out", () => {
    expect(() => underSeeds(toy(true), 1, FEW)).toThrow(/primary-log, seed \d+: /);
  });
});
