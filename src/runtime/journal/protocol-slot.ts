/**
 * The part of the journal that belongs to one node: one slot for each part of its protocol that persists records. To
 * the host they look like a single slot, except that `compact` replaces the records of only one part.
 */
import { slotFinder, slotReplacedBy, slotsOf } from "../../core/journal-slots.ts";
import type { Protocol, RecordOf, Vocabulary } from "../../core/protocol.ts";
import { type Shapes, variants } from "../../core/shape.ts";
import type { Journal, Slot } from "./journal.ts";

/**
 * Opens a protocol's slots and returns them as one slot.
 * @param name the node's name in the journal, which distinguishes it from other nodes
 */
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
    whenDurable: (then) => at(parts[0] as string).whenDurable(then), // This covers all the slots.
    release() {
      for (const slot of all) slot.release();
    },
  };
}

const nameOf = (name: string, part: string): string => `${name}/${part}`;
