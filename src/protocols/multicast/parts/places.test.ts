import fc from "fast-check";
import { expect, it } from "vitest";
import { isAfter, move, type Place } from "./places.ts";

const place = fc.record({ place: fc.integer({ min: 1, max: 30 }), proposer: fc.nat(4) });
const key = ({ place: number, proposer }: Place): string => `${number}, ${proposer}`;
const ascending = (a: Place, b: Place): number => (isAfter(a, b) ? 1 : -1);

it("whatever moves, the queue ascends, and holds what it held", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(place, { minLength: 1, maxLength: 40, selector: key }),
      fc.nat(),
      place,
      (places, at, to) => {
        const queue = places.toSorted(ascending);
        const from = queue[at % queue.length] as Place;
        fc.pre(!queue.some((other) => other !== from && key(other) === key(to)));
        const expected = [...queue.filter((other) => other !== from), to].toSorted(ascending).map(key);
        expect(move(queue, { ...from }, to)).toEqual(to);
        expect(queue.map(key)).toEqual(expected);
      },
    ),
  );
});
