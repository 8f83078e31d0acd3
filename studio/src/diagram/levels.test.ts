import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Levels, type Place } from "./levels.ts";

const same = (place: Place): Place => place;
const instant = (begin: number, lane = 0): Place => ({ begin, end: begin, lane });

describe("a window", () => {
  test("finds everything that reaches into it, in the given order", () => {
    const places = fc.array(
      fc.record({ begin: fc.integer({ min: 0, max: 60 }), length: fc.integer({ min: 0, max: 30 }), lane: fc.nat(3) }),
    );
    fc.assert(
      fc.property(places, fc.integer({ min: -5, max: 70 }), fc.nat(20), (given, from, width) => {
        const all = given.map(({ begin, length, lane }) => ({ begin, end: begin + length, lane }));
        const levels = new Levels(all, same, { keepsLong: true });
        const expected = all.filter(({ begin, end }) => begin <= from + width && end >= from);
        expect(levels.between(from, from + width, 1_000)).toEqual(expected);
        expect(levels.count(from, from + width)).toBe(expected.length);
      }),
    );
  });

  test("of two hundred items costs the same among a hundred thousand items as among a thousand", () => {
    const costOf = (count: number): number => {
      const levels = new Levels(
        Array.from({ length: count }, (_, place) => ({ begin: place, end: place + 3, lane: place % 5 })),
        same,
        { keepsLong: true },
      );
      levels.between(count / 2, count / 2 + 200, 1_000);
      return levels.touched;
    };
    expect(costOf(100_000)).toBeLessThan(costOf(1_000) + 100);
  });
});

describe("more items than can be distinguished", () => {
  const many = Array.from({ length: 100_000 }, (_, place) => instant(place, place % 4));

  test("are represented by samples of each lane, spread over the window", () => {
    const found = new Levels(many, same, { keepsLong: true }).between(0, 100_000, 1_000);
    expect(found.length).toBeGreaterThan(300);
    expect(found.length).toBeLessThanOrEqual(1_000);
    for (const lane of [0, 1, 2, 3]) {
      const own = found.filter((each) => each.lane === lane).map(({ begin }) => begin);
      const gaps = own.slice(1).map((begin, index) => begin - (own[index] as number));
      expect(Math.max(...gaps)).toBeLessThan(2 * Math.min(...gaps) + 4);
    }
  });

  test("cost little per window, once the levels exist", () => {
    const levels = new Levels(many, same, { keepsLong: true });
    levels.between(0, 100_000, 1_000);
    const before = levels.touched;
    for (let from = 0; from < 50_000; from += 1_000) levels.between(from, from + 50_000, 1_000);
    expect(levels.touched - before).toBeLessThan(50 * 3_000);
  });

  test("keep long items if required, and the preferred one of items that are close together", () => {
    const long = { begin: 10, end: 90_000, lane: 0 };
    const heavy = instant(10_001, 0);
    const thinning = { keepsLong: true, prefers: (next: Place) => next === heavy };
    const found = new Levels([long, ...many, heavy], same, thinning).between(0, 100_000, 500);
    expect(found).toContain(long);
    expect(found).toContain(heavy);
    expect(found.length).toBeLessThanOrEqual(500);
  });
});
