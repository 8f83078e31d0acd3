/**
 * The part of the journal that belongs to one node: a slot for each part of its protocol that persists. The host sees them as
 * one slot. There, `compact` replaces the records of one part only.
 */
import { slotFinder, slotReplacedBy, slotsOf } from "../../core/journal-slots.ts";
import type { Protocol, RecordOf, Vocabulary } from "../../core/protocol.ts";
import { type Shapes, variants } from "../../core/shape.ts";
import type { Journal, Slot } from "./journal.ts";

/** Takes the slots. @param name the node's name in the journal, which distinguishes it from other nodes */
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
    whenDurable: (then) => at(parts[0] as string).whenDurable(then), // Covers all slots.
    release() {
      for (const slot of all) slot.release();
    },
  };
}

const nameOf = (name: string, part: string): string => `${name}/${part}`;
