/** Where a node whose parts journal each for itself finds its records, those of the first release as well. */
import { expect, test } from "vitest";
import { journalFolder } from "../../../test/journal/journal-folder.ts";
import { assemble } from "../../core/assemble.ts";
import type { Protocol } from "../../core/protocol.ts";
import { natural, variants } from "../../core/shape.ts";
import { protocolSlot } from "./protocol-slot.ts";

type Counter = { state: { count: number }; record: { type: "count"; count: number } };
const counter = (name: string): Protocol<Counter> => ({
  name,
  init: () => ({ count: 0 }),
  replay: {
    count(state, { count }) {
      state.count = count;
    },
  },
  shapes: { record: { count: { count: natural } } },
  source: "none",
  assumes: [],
  properties: [],
  costs: [],
  view: () => ({ role: name }),
});
const two = assemble<{ left: Counter; right: Counter }>(
  "two",
  { left: counter("left"), right: counter("right") },
  {},
  { face: "left" },
);
const record = (part: "left" | "right", count: number) => ({ type: part, body: { type: "count" as const, count } });
const shape = variants(two.shapes.record as never);

const folder = journalFolder();

test("parts that journal have a slot each", async () => {
  const journal = await folder.open();
  const slot = protocolSlot(journal, "two", two);
  for (const count of [1, 2]) for (const part of ["left", "right"] as const) slot.append(record(part, count));
  slot.compact([record("left", 3)]);
  await journal.close();
  const later = await folder.open();
  expect(protocolSlot(later, "two", two).records).toEqual([record("left", 3), record("right", 1), record("right", 2)]);
});

test("what the first release journalled in one slot is moved, once; that release would not read it any more", async () => {
  const first = await folder.open();
  const before = first.slot<unknown>("two", shape);
  for (const each of [record("right", 7), record("left", 8)]) before.append(each);
  await first.close();
  for (let again = 0; again < 3; again++) {
    const journal = await folder.open();
    expect(protocolSlot(journal, "two", two).records).toEqual([record("left", 8), record("right", 7)]);
    await journal.close();
  }
  const old = await folder.open();
  expect(() => old.slot("two", shape)).toThrow("is of another protocol or another version of it");
});
