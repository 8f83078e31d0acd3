import { describe, expect, test } from "vitest";
import { UsageError } from "../core/errors.ts";
import { faultInjector, noFaults, readFaults } from "./fault-injector.ts";
import { realPlatform } from "./platform/real.ts";

const faults = (change: object): object => ({ ...noFaults, ...change });
const verdicts = (injector: ReturnType<typeof faultInjector>, to: number) =>
  Array.from({ length: 200 }, () => injector.verdict(to));

describe("the fault injector", () => {
  test("lets everything through at first, and again once faults are cleared", () => {
    const injector = faultInjector(realPlatform.random);
    expect(new Set(verdicts(injector, 1))).toEqual(new Set([0]));
    injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max: 0 } };
    expect(new Set(verdicts(injector, 1))).toEqual(new Set([0]));
  });

  test("does not look up the faults for each message once they are healed", () => {
    const injector = faultInjector(realPlatform.random);
    let looks = 0;
    injector.faults = { ...noFaults, dropRate: 1 };
    injector.faults = {
      ...noFaults,
      get cutTo() {
        looks += 1;
        return [];
      },
    };
    looks = 0;
    verdicts(injector, 1);
    expect(looks).toBe(0);
  });

  test("cuts exactly the links in `cutTo`", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = { ...noFaults, cutTo: [2, 3] };
    expect([1, 2, 3].map((to) => injector.verdict(to))).toEqual([0, "cut", "cut"]);
  });

  test("drops all, some or no messages", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = { ...noFaults, dropRate: 1 };
    expect(new Set(verdicts(injector, 1))).toEqual(new Set(["dropped"]));
    injector.faults = { ...noFaults, dropRate: 0.5 };
    expect(new Set(verdicts(injector, 1))).toEqual(new Set(["dropped", 0]));
  });

  test("draws delays within the bounds", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = { ...noFaults, delayMs: { min: 10, max: 20 } };
    for (const verdict of verdicts(injector, 1)) {
      expect(verdict).toBeGreaterThanOrEqual(10);
      expect(verdict).toBeLessThanOrEqual(20);
    }
  });
});

describe("datagrams at the fault injector", () => {
  const datagrams = (change: object) => ({ ...noFaults, datagrams: { ...sound, ...change } });
  const sound = { dropRate: 0, duplicateRate: 0, reorderRate: 0 };
  const fates = (injector: ReturnType<typeof faultInjector>) =>
    Array.from({ length: 200 }, () => injector.datagramVerdict(1));

  test("arrive once and immediately by default", () => {
    const injector = faultInjector(realPlatform.random);
    expect(injector.isCalm).toBe(true);
    expect(fates(injector)).toEqual(fates(injector).map(() => [0]));
    injector.faults = datagrams({});
    expect(injector.isCalm).toBe(true);
    injector.faults = datagrams({ reorderRate: 0.1 });
    expect(injector.isCalm).toBe(false);
  });

  test("are cut off, dropped and delayed like messages", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = { ...noFaults, cutTo: [1] };
    expect(new Set(fates(injector))).toEqual(new Set(["cut"]));
    injector.faults = { ...noFaults, dropRate: 1 };
    expect(new Set(fates(injector))).toEqual(new Set(["dropped"]));
    injector.faults = { ...noFaults, delayMs: { min: 5, max: 5 } };
    expect(fates(injector)).toEqual(fates(injector).map(() => [5]));
  });

  test("may be dropped separately", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = datagrams({ dropRate: 1 });
    expect(new Set(fates(injector))).toEqual(new Set(["dropped"]));
    expect(new Set(verdicts(injector, 1))).toEqual(new Set([0]));
  });

  test("may arrive again later, and out of order", () => {
    const injector = faultInjector(realPlatform.random);
    injector.faults = datagrams({ duplicateRate: 1 });
    for (const fate of fates(injector)) {
      expect(fate[0]).toBe(0);
      expect(fate[1]).toBeGreaterThanOrEqual(1);
      expect(fate).toHaveLength(2);
    }
    injector.faults = datagrams({ reorderRate: 1 });
    for (const fate of fates(injector)) {
      expect(fate).toHaveLength(1);
      expect(fate[0]).toBeGreaterThanOrEqual(1);
    }
  });
});

describe("requested faults", () => {
  test.each([noFaults, faults({ dropRate: 1, delayMs: { min: 0, max: 60_000 } }), faults({ cutTo: [0, 7] })])(
    "may be %j",
    (asked) => {
      expect(readFaults(asked)).toEqual(asked);
    },
  );

  test.each([{}, { cutTo: [2] }, { dropRate: 0.5 }, { delayMs: { min: 1, max: 2 } }])(
    "may be %j: omitted faults are off",
    (asked) => {
      expect(readFaults(asked)).toEqual({ ...noFaults, ...asked });
    },
  );

  test("of datagrams may be partial: omitted ones are off", () => {
    expect(readFaults({ datagrams: { duplicateRate: 0.1 } })).toEqual({
      ...noFaults,
      datagrams: { dropRate: 0, duplicateRate: 0.1, reorderRate: 0 },
    });
  });

  test.each<[unknown, string]>([
    [{ datagrams: 1 }, "expected faults.datagrams to be an object, got 1"],
    [{ datagrams: { loss: 1 } }, "expected faults.datagrams.loss to be absent, got 1"],
    [{ datagrams: { dropRate: 2 } }, "expected faults.datagrams.dropRate to be from 0 to 1, got 2"],
    [{ datagrams: { reorderRate: -1 } }, "expected faults.datagrams.reorderRate to be from 0 to 1, got -1"],
    [null, "expected faults to be an object, got null"],
    [[], "expected faults to be an object, got []"],
    [{ loss: 1 }, "expected faults.loss to be absent, got 1"],
    [{ delayMs: {} }, "expected faults.delayMs.min to be a finite number, got undefined"],
    [faults({ dropRate: -0.1 }), "expected faults.dropRate to be from 0 to 1, got -0.1"],
    [faults({ dropRate: 1.1 }), "expected faults.dropRate to be from 0 to 1, got 1.1"],
    [faults({ dropRate: "1" }), 'expected faults.dropRate to be a finite number, got "1"'],
    [faults({ delayMs: { min: -1, max: 5 } }), "expected faults.delayMs.min to be at least 0, got -1"],
    [faults({ delayMs: { min: 6, max: 5 } }), "expected faults.delayMs.max to be between its min and 60000, got 5"],
    [
      faults({ delayMs: { min: 0, max: 60_001 } }),
      "expected faults.delayMs.max to be between its min and 60000, got 60001",
    ],
    [faults({ cutTo: [0.5] }), "expected faults.cutTo[0] to be a natural number, got 0.5"],
    [faults({ loss: 1 }), "expected faults.loss to be absent, got 1"],
  ])("may not be %j", (asked, problem) => {
    expect(() => readFaults(asked)).toThrow(new UsageError("bad-faults", problem));
  });
});
