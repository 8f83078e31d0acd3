import fc from "fast-check";
import { expect, it } from "vitest";
import {
  copyOfTable,
  emptyTable,
  enter,
  entriesOf,
  keysOf,
  lookUp,
  strike,
  type Table,
  tableOf,
  valuesOf,
} from "./table.ts";

const key = fc.nat(3_000).map((number) => `k${number}`);
const change = fc.oneof(
  fc.record({ put: key, value: fc.nat() }),
  fc.record({ remove: key }),
  fc.record({ fill: fc.nat(3_000), count: fc.nat(1_500) }),
  fc.record({ clear: fc.nat(3_000), count: fc.nat(1_500) }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Applies the same change to a table and to a map. */
function apply(table: Table<number>, model: Map<string, number>, each: Change): void {
  const put = (name: string, value: number): void => {
    expect(enter(table, name, value)).toBe(model.get(name) ?? null);
    model.set(name, value);
  };
  const remove = (name: string): void => {
    expect(strike(table, name)).toBe(model.get(name) ?? null);
    model.delete(name);
  };
  if ("put" in each) put(each.put, each.value);
  else if ("remove" in each) remove(each.remove);
  else if ("fill" in each) for (let at = 0; at < each.count; at++) put(`k${each.fill + at}`, at);
  else for (let at = 0; at < each.count; at++) remove(`k${each.clear + at}`);
}

const sorted = (model: ReadonlyMap<string, number>): [string, number][] =>
  [...model].sort(([a], [b]) => (a < b ? -1 : 1));

it("a table equals a map, ordered by name, in blocks that are neither empty nor too long", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), key, fc.option(key), (changes, from, to) => {
      const table = emptyTable<number>();
      const model = new Map<string, number>();
      for (const each of changes) apply(table, model, each);
      const entries = sorted(model);
      expect([...entriesOf(table)]).toEqual(entries);
      expect([keysOf(table), valuesOf(table)]).toEqual([
        entries.map(([name]) => name),
        entries.map(([, value]) => value),
      ]);
      expect(table.size).toBe(model.size);
      const within = entries.filter(([name]) => name >= from && (to === null || name < to));
      expect([...entriesOf(table, from, to)]).toEqual(within);
      expect(lookUp(table, from)).toBe(model.get(from) ?? null);
      for (const { keys, values } of table.blocks) {
        expect(keys.length).toBe(values.length);
        expect(keys.length).toBeGreaterThan(0);
        expect(keys.length).toBeLessThanOrEqual(128);
      }
    }),
    { numRuns: 50 },
  );
});

it("a copy does not change with the table", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 10 }), fc.array(change, { maxLength: 10 }), (before, after) => {
      const table = emptyTable<number>();
      const model = new Map<string, number>();
      for (const each of before) apply(table, model, each);
      const copy = copyOfTable(table);
      const stood = sorted(model);
      for (const each of after) apply(table, model, each);
      expect([...entriesOf(copy)]).toEqual(stood);
    }),
    { numRuns: 50 },
  );
});

it("a table can be built from ordered entries", () => {
  const entries = Array.from({ length: 2_000 }, (_, at): [string, number] => [`k${String(at).padStart(5, "0")}`, at]);
  const table = tableOf(entries);
  expect([...entriesOf(table)]).toEqual(entries);
  expect(table.size).toBe(2_000);
});
