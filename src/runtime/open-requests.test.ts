import fc from "fast-check";
import { expect, test } from "vitest";
import { OpenRequests } from "./open-requests.ts";

const FIRST = 5_000_000;

test("assigns consecutive numbers, and keeps each caller until it is taken", () => {
  const open = new OpenRequests<{ who: string } | null>(FIRST);
  open.add({ who: "a" });
  open.add(null);
  expect([open.next, open.has(FIRST), open.has(FIRST + 1), open.has(FIRST + 2)]).toEqual([
    FIRST + 2,
    true,
    true,
    false,
  ]);
  expect(open.take(FIRST + 1)).toBeNull();
  expect(open.take(FIRST + 1)).toBeUndefined();
  expect(open.take(FIRST)).toEqual({ who: "a" });
  expect([open.has(FIRST), open.has(FIRST - 1), open.take(FIRST - 1), open.take(FIRST + 2)]).toEqual([
    false,
    false,
    undefined,
    undefined,
  ]);
});

/** An action that adds this many requests, or answers the open request at this index. */
const deed = fc.oneof(
  fc.record({ come: fc.nat({ max: 1_500 }) }),
  fc.record({ answer: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), count: fc.nat({ max: 1_500 }) }),
);

test("behaves like a Map for any number of requests, answered late or never", () => {
  fc.assert(
    fc.property(fc.array(deed, { maxLength: 30 }), (deeds) => {
      const open = new OpenRequests<{ number: number }>(FIRST);
      const model = new Map<number, { number: number }>();
      for (const each of deeds) {
        if ("come" in each)
          for (let i = 0; i < each.come; i++) {
            const by = { number: open.next };
            model.set(open.next, by);
            open.add(by);
          }
        else
          for (let i = 0; i < each.count && model.size > 0; i++) {
            const number = [...model.keys()][Math.floor(each.answer * model.size)] as number;
            expect(open.take(number)).toBe(model.get(number));
            model.delete(number);
          }
        for (let number = FIRST - 1; number <= open.next; number += 97)
          expect(open.has(number)).toBe(model.has(number));
      }
      expect(open.takeAll()).toEqual([...model.values()]);
      expect(open.takeAll()).toEqual([]);
    }),
    { numRuns: 20 },
  );
});
