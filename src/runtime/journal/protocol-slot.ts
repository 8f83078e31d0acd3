/**
 * Where the node of a protocol journals: in one slot of the journal for each part that does. The host sees them as one, and what
 * it replaces there is what the same part has written.
 */
import { EnvironmentError } from "../../core/errors.ts";
import { slotFinder, slotReplacedBy, slotsOf } from "../../core/journal-slots.ts";
import type { Protocol, RecordOf, Vocabulary } from "../../core/protocol.ts";
import { natural, type Shape, type Shapes, struct, variants } from "../../core/shape.ts";
import type { Journal, Slot } from "./journal.ts";

/** Takes them. @param name of the node's place in the journal, among those of others. */
export function protocolSlot<V extends Vocabulary>(
  journal: Journal,
  name: string,
  protocol: Protocol<V>,
): Slot<RecordOf<V>> {
  const shape = variants((protocol.shapes.record ?? {}) as Shapes<RecordOf<V>>);
  const parts = slotsOf(protocol);
  if (parts.length < 2) return journal.slot(name, shape);
  const slotOf = slotFinder(protocol);
  const slots = new Map(parts.map((part) => [part, journal.slot<RecordOf<V>>(nameOf(name, part), shape)]));
  const all = [...slots.values()];
  const at = (part: string): Slot<RecordOf<V>> => slots.get(part) as Slot<RecordOf<V>>;
  moveFrom(journal, name, shape, (record) => at(slotOf(record)).append(record));
  return {
    get records() {
      return all.flatMap(({ records }) => records);
    },
    append: (record) => at(slotOf(record)).append(record),
    compact: (records) => at(slotReplacedBy(records, slotOf)).compact(records),
    whenDurable: (then) => at(parts[0] as string).whenDurable(then), // It asks for all that the journal was given.
    release() {
      for (const slot of all) slot.release();
    },
  };
}

/** What stands where the first release had the records of all parts: that one would read them, and refuses this. */
const moved = struct({ moved: natural });

/** Moves what the first release journalled in one slot for all parts, in one write: whole or not at all. */
function moveFrom<R>(journal: Journal, name: string, shape: Shape<R>, move: (record: R) => void): void {
  let marker: Slot<{ moved: number }>;
  try {
    marker = journal.slot(name, moved);
  } catch (error) {
    if (!(error instanceof EnvironmentError && error.code === "other-journal")) throw error;
    const before = journal.slot(name, shape);
    for (const record of before.records) move(record);
    before.release();
    journal.forget(name);
    marker = journal.slot(name, moved);
  }
  if (marker.records.length === 0) marker.append({ moved: 1 });
  marker.release();
}

const nameOf = (name: string, part: string): string => `${name}/${part}`;
