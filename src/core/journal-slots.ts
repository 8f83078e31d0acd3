/**
 * Where in a node's journal a record stands. Each part of an assembly that journals has a slot of its own, so that it can replace what
 * it has written without touching the others'. A slot is named by the path of its part, such as `multicast.views`; an
 * algorithm by itself has one, named "". Within a slot records stand in order; between slots there is none.
 */
import { InvariantViolation, unexpected } from "./errors.ts";
import type { Protocol, Slot, Vocabulary } from "./protocol.ts";

/** What an assembly journals is wrapped in the names of its parts. */
type Journalled = { readonly type: string; readonly body?: Journalled };
export type Journalling = Pick<Protocol<Vocabulary>, "name" | "replay" | "slots">;

/** The slots of a protocol: none if it keeps no journal. */
export const slotsOf = ({ replay, slots }: Omit<Journalling, "name">): readonly Slot[] =>
  slots ?? (Object.keys(replay ?? {}).length === 0 ? [] : [""]);

/** Of each record that the protocol journals, its slot. What it returns throws an InvariantViolation for a record that no handler would replay. */
export function slotFinder(protocol: Journalling): (record: Journalled) => Slot {
  const slots = slotsOf(protocol);
  const find = ({ type, body }: Journalled, before = ""): Slot => {
    const path = before + type;
    if (slots.includes(path)) return path;
    if (body !== undefined) return find(body, `${path}.`);
    throw new InvariantViolation("no-replay", `${protocol.name} journals “${path}” and has no handler that replays it`);
  };
  return slots[0] === "" ? () => "" : (record) => find(record);
}

/** The slot that these records, all of one part, are to replace. @throws InvariantViolation for none: nobody could tell which. */
export function slotReplacedBy<R>(records: readonly R[], slotOf: (record: R) => Slot): Slot {
  const [first] = records;
  if (first !== undefined) return slotOf(first);
  const wrong = unexpected("what replaces a slot of the journal", "at least one record", records);
  throw new InvariantViolation("bad-compaction", wrong);
}

/** The journal once these records have taken the place of all that their slot holds. */
export function compacted<R>(journal: readonly R[], records: readonly R[], slotOf: (record: R) => Slot): R[] {
  const slot = slotReplacedBy(records, slotOf);
  return [...journal.filter((record) => slotOf(record) !== slot), ...records];
}
