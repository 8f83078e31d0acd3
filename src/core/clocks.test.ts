import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { advance, compare, happenedBefore, merge, precedes, tick, type VectorClock } from "./clocks.ts";

interface Event {
  node: number;
  lamport: number;
  vector: VectorClock;
  /** Indexes of the events that happened before this one, according to the definition. */
  past: Set<number>;
}

/** A random computation. Each step is a local event at a node, which may receive the message of an earlier event. */
const computation = fc
  .array(fc.record({ node: fc.nat(3), from: fc.option(fc.nat(29)) }), { maxLength: 30 })
  .map((steps) => {
    const events: Event[] = [];
    for (const { node, from } of steps) {
      const before = events.findLastIndex((event) => event.node === node);
      const causes = [before, from === null ? -1 : Math.min(from, events.length - 1)].filter((i) => i >= 0);
      const causal = causes.map((i) => events[i] as Event);
      const past = new Set(causes.flatMap((i) => [i, ...(events[i] as Event).past]));
      const lamport = causal.reduce((time, event) => Math.max(time, event.lamport), 0);
      const vector = causal.reduce<VectorClock>((clock, event) => merge(clock, event.vector), {});
      events.push({ node, lamport: tick(lamport), vector: advance(vector, node), past });
    }
    return events;
  });

describe("logical clocks", () => {
  it("K1: e → f implies C(e) < C(f)", () => {
    fc.assert(
      fc.property(computation, (events) => {
        for (const event of events)
          for (const cause of event.past) expect((events[cause] as Event).lamport).toBeLessThan(event.lamport);
      }),
    );
  });

  it("K1: (T, p) is a total order", () => {
    const stamp = fc.record({ time: fc.nat(5), node: fc.nat(3) });
    fc.assert(
      fc.property(stamp, stamp, (a, b) => {
        const same = a.time === b.time && a.node === b.node;
        expect([precedes(a, b), precedes(b, a), same].filter(Boolean)).toHaveLength(1);
      }),
    );
  });

  it("K2: e → f if and only if V(e) < V(f); otherwise they are concurrent", () => {
    fc.assert(
      fc.property(computation, (events) => {
        for (const [i, e] of events.entries()) {
          for (const [j, f] of events.entries()) {
            expect(happenedBefore(e.vector, f.vector)).toBe(f.past.has(i));
            const expected = i === j ? "equal" : f.past.has(i) ? "before" : e.past.has(j) ? "after" : "concurrent";
            expect(compare(e.vector, f.vector)).toBe(expected);
          }
        }
      }),
    );
  });
});
