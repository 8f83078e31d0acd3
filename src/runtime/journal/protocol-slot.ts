/**
 * Where the node of a protocol journals: in one slot of the journal for each part that does. The host sees them as one, and what
 * it replaces there is what the same part has written.
 */
import { slotFinder, slotReplacedBy, slotsOf } from "../../core/journal-slots.ts";
import type { Protocol, RecordOf, Vocabulary } from "../../core/protocol.ts";
import { type Shapes, variants } from "../../core/shape.ts";
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

const nameOf = (name: string, part: string): string => `${name}/${part}`;
