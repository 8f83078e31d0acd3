/**
 * Slots of a node's journal. Each part of an assembly that keeps a journal has its own slot, so that it can replace its
 * records without touching the records of other parts. A slot is named after the path of its part, such as
 * `multicast.views`. An algorithm that is not an assembly has a single slot, named "". Records are ordered within a
 * slot but not across slots.
 */
import { InvariantViolation, unexpected } from "./errors.ts";
import type { Protocol, Slot, Vocabulary } from "./protocol.ts";

/** A journal record. An assembly's records are wrapped in the names of their parts. */
type Journalled = { readonly type: string; readonly body?: Journalled };
/** The fields of a protocol that determine its journal slots. */
export type Journalling = Pick<Protocol<Vocabulary>, "name" | "replay" | "slots">;

/** Returns a protocol's slots, or an empty list if the protocol has no journal. */
export const slotsOf = ({ replay, slots }: Omit<Journalling, "name">): readonly Slot[] =>
  slots ?? (Object.keys(replay ?? {}).length === 0 ? [] : [""]);

/**
 * Returns a function that finds a record's slot. That function throws InvariantViolation if no handler replays the
 * record.
 */
export function slotFinder(protocol: Journalling): (record: Journalled) => Slot {
  const slots = slotsOf(protocol);
  const find = ({ type, body }: Journalled, before = ""): Slot => {
    const path = before + type;
    if (slots.includes(path)) return path;
    if (body !== undefined) return find(body, `${path}.`);
    throw new InvariantViolation("no-replay", `${protocol.name} journals “${path}” but has no handler that replays it`);
  };
  return slots[0] === "" ? () => "" : (record) => find(record);
}

/**
 * Returns the slot whose records these replace. They all belong to one part. @throws InvariantViolation if the list is
 * empty, because the slot is then unknown
 */
export function slotReplacedBy<R>(records: readonly R[], slotOf: (record: R) => Slot): Slot {
  const [first] = records;
  if (first !== undefined) return slotOf(first);
  const wrong = unexpected("the replacement of a journal slot", "at least one record", records);
  throw new InvariantViolation("bad-compaction", wrong);
}

/** Returns the journal after these records have replaced everything in their slot. */
export function compacted<R>(journal: readonly R[], records: readonly R[], slotOf: (record: R) => Slot): R[] {
  const slot = slotReplacedBy(records, slotOf);
  return [...journal.filter((record) => slotOf(record) !== slot), ...records];
}
