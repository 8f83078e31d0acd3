import { describe, expect, it } from "vitest";
import { type Random, random } from "../core/random.ts";
import { type Entries, entriesOf as entriesFor } from "./entries.ts";
import type { Operation } from "./history.ts";
import { type Model, queue, register } from "./model.ts";
import { transitions } from "./transitions.ts";

const entriesOf = (operations: readonly Operation[], model: Model) => entriesFor(operations, model, transitions(model));

const write = (input: number, call: number, end: number | null): Operation => ({
  process: 0,
  f: "write",
  key: undefined,
  input,
  output: end === null ? undefined : null,
  call,
  return: end,
  line: null,
});

describe("entries", () => {
  it("are numbered by time, calls before returns at equal times", () => {
    const { calls, returns, end } = entriesOf([write(0, 0, 5), write(1, 5, 6), write(2, 3, 5)], register());
    expect([...calls]).toEqual([-1, 0, 1, 2, -1, -1, -1, -1]);
    expect([...returns]).toEqual([-1, -1, -1, -1, 0, 1, 2, -1]);
    expect(end).toBe(7);
  });

  it("omit pending operations that change nothing", () => {
    const read = (end: number | null): Operation => ({ ...write(0, 0, end), f: "read" });
    expect(entriesOf([read(null), read(1)], register()).operations).toHaveLength(1);
  });

  it("reuse a slot after its operation returns, so that there are as many bits as concurrent operations", () => {
    const sequence = Array.from({ length: 100 }, (_, at) => write(at, 10 * at, 10 * at + 15));
    expect(entriesOf(sequence, register()).words).toBe(1);
    const atOnce = Array.from({ length: 100 }, (_, at) => write(at, 0, 1));
    expect(entriesOf(atOnce, register()).words).toBe(4);
  });

  it("order equal operations if one is called and returns first, but not if one surrounds the other", () => {
    const entries = entriesOf([write(1, 0, 5), write(1, 2, 7), write(1, 3, 4), write(2, 3, 9)], register());
    expect([...entries.prior]).toEqual([-1, 0, -1, -1]);
  });

  it("two sets of placed operations never have equal words before the same return", () => {
    for (let seed = 0; seed < 300; seed++) {
      const chance = random(seed);
      const operations = Array.from({ length: 1 + chance.below(50) }, () => {
        const call = chance.below(60);
        return write(chance.below(3), call, chance.below(3) === 0 ? null : call + chance.below(20));
      });
      const entries = entriesOf(operations, register());
      const setOf = new Map<string, string>();
      for (let run = 0; run < 20; run++) {
        for (const [looks, set] of walk(entries, chance)) {
          if ((setOf.get(looks) ?? set) !== set)
            expect.fail(`seed ${seed}: ${setOf.get(looks)} and ${set} are both ${looks}`);
          setOf.set(looks, set);
        }
      }
    }
  });

  it("the model's prediction decides which operations are tried first", () => {
    const enqueue = (input: number): Operation => ({ ...write(input, 0, 9), f: "enqueue" });
    const dequeue = (output: number, end: number): Operation => ({
      ...write(0, 10, end),
      f: "dequeue",
      input: null,
      output,
    });
    const { operations, rank } = entriesOf([enqueue(1), enqueue(2), dequeue(2, 11), dequeue(1, 12)], queue());
    const inOrder = [...operations.keys()].sort((a, b) => (rank[a] ?? 0) - (rank[b] ?? 0)).map((op) => operations[op]);
    expect(inOrder.map((one) => one?.output ?? one?.input)).toEqual([2, 1, 2, 1]);
  });
});

/** Places operations at random, as the search may do, ignoring the model. Yields the encoded set and the actual one. */
function* walk(entries: Entries, chance: Random): Generator<[string, string]> {
  const placed = new Set<number>();
  const words = new Int32Array(entries.words);
  for (;;) {
    let barrier = 1;
    while (barrier < entries.end && (entries.returns[barrier] === -1 || placed.has(entries.returns[barrier]!)))
      barrier++;
    yield [`${barrier}: ${words.join()}`, [...placed].sort((a, b) => a - b).join()];
    if (barrier === entries.end) return;
    const mayBeNext = [...entries.operations.keys()].filter((op) => {
      if (placed.has(op)) return false;
      const isFirstOfKind =
        entries.kindOf[op] === -1 || entries.kindOf[op - 1] !== entries.kindOf[op] || placed.has(op - 1);
      return isFirstOfKind && entries.callEntry[op]! <= barrier;
    });
    const op = chance.pick(mayBeNext);
    placed.add(op);
    words[entries.wordOf[op]!]! ^= entries.toggleOf[op]!;
  }
}
