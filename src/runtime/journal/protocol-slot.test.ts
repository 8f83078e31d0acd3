/** Checks a node each of whose parts has its own journal slot. */
import { expect, test } from "vitest";
import { journalFolder } from "../../../test/journal/journal-folder.ts";
import { assemble } from "../../core/assemble.ts";
import type { Protocol } from "../../core/protocol.ts";
import { natural } from "../../core/shape.ts";
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
