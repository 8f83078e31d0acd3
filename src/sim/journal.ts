/** A node's journal on a disk that takes its time and may be damaged. */
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { slotReplacedBy } from "../core/journal-slots.ts";
import { clone } from "../core/plain.ts";
import type { NodeId, Slot } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";

/** What becomes of a journal when its node crashes. */
export type JournalFate =
  | "kept"
  /** Records that were not durable yet are lost. */
  | "synced"
  | "lost"
  /**
   * One record is damaged, drawn by the seed. If it is the last, a restart cuts it off like a write that a crash has
   * torn; if others follow, the node refuses to start: an `EnvironmentError`.
   */
  | "corrupted";

export interface CrashFate {
  readonly journal: JournalFate;
  /** Which record of a corrupted journal is damaged, from 0. Otherwise the seed says. */
  readonly record?: number;
}

export interface Journal<R> {
  append(record: R, durableAt: number): void;
  /** Replaces all records of a slot by these. Until that is durable, a crash may bring back what it replaced. */
  compact(records: readonly R[], durableAt: number): void;
  /** Makes everything durable that was written so far. */
  sync(): void;
  /** Loses what is not durable at `now`. Returns how many writes that were. */
  loseUnsynced(now: number): number;
  /** Damages the record of this index. */
  damage(index: number): void;
  readonly records: readonly R[];
  /** The records before the first that cannot be read. */
  readonly legible: readonly R[];
  clear(): void;
  /** The records, for a restart of `node`. @throws EnvironmentError if one before the last is damaged. */
  replay(node: NodeId): readonly R[];
}

interface Write<R> {
  readonly record: R;
  readonly slot: Slot;
  /** It takes the place of what was in the slot before it. */
  readonly replaces: boolean;
  /** Records that were written together are there together, or not at all. */
  readonly group: number;
  durableAt: number;
}

/** @param slotOf the part of an assembly that a record is of. */
export function journal<R>(slotOf: (record: R) => Slot = () => ""): Journal<R> {
  let writes: Write<R>[] = [];
  let syncedCount = 0;
  let damaged: number | null = null;
  let group = 0;

  function write(records: readonly R[], isCompaction: boolean, durableAt: number): void {
    group += 1;
    for (const [i, record] of records.entries())
      writes.push({ record: clone(record), slot: slotOf(record), replaces: isCompaction && i === 0, group, durableAt });
  }
  /** Without what has been replaced. */
  function left(from: readonly Write<R>[] = writes): readonly Write<R>[] {
    const replaced = new Set<Slot>();
    return from
      .toReversed()
      .filter(({ slot, replaces }) => {
        const isLeft = !replaced.has(slot);
        if (replaces) replaced.add(slot);
        return isLeft;
      })
      .reverse();
  }
  const recordsOf = (from: readonly Write<R>[]): readonly R[] => from.map(({ record }) => record);
  /** What a crash has torn is what was written last; damage before that is found, and nothing is read. */
  const isTorn = (at: number): boolean => left()[at]?.group === writes.at(-1)?.group;
  const withoutLast = (): Write<R>[] => writes.filter((each) => each.group !== writes.at(-1)?.group);
  /** Of what has been replaced by something durable nothing can come back. */
  function forget(slot: Slot): void {
    const settled = writes.findLastIndex((each, i) => each.replaces && each.slot === slot && i < syncedCount);
    const before = writes.length;
    writes = writes.filter((each, i) => each.slot !== slot || i >= settled);
    syncedCount -= before - writes.length;
  }

  return {
    append: (record, durableAt) => write([record], false, durableAt),
    compact(replacing, durableAt) {
      forget(slotReplacedBy(replacing, slotOf));
      write(replacing, true, durableAt);
    },
    sync() {
      for (; syncedCount < writes.length; syncedCount++)
        (writes[syncedCount] as Write<R>).durableAt = Number.NEGATIVE_INFINITY;
    },
    loseUnsynced(now) {
      const before = writes.length;
      writes = writes.filter(({ durableAt }) => durableAt <= now);
      syncedCount = writes.length;
      return before - writes.length;
    },
    damage(index) {
      damaged = index;
    },
    get records() {
      return recordsOf(left());
    },
    get legible() {
      if (damaged === null) return recordsOf(left());
      return isTorn(damaged) ? recordsOf(left(withoutLast())) : recordsOf(left()).slice(0, damaged);
    },
    clear() {
      writes = [];
      syncedCount = 0;
    },
    replay(node) {
      const { length } = left();
      if (damaged !== null && !isTorn(damaged))
        throw new EnvironmentError(
          "damaged-journal",
          `the journal of node ${node} is damaged: record ${damaged + 1} of ${length} cannot be read, so the node does not start`,
        );
      if (damaged !== null) writes = withoutLast();
      damaged = null;
      return clone(recordsOf(left()));
    },
  };
}

/** What a crash did to a journal. */
interface Damage {
  readonly what: string;
  /** How many records that were not durable are gone. */
  readonly unsynced: number;
}

/** What a crash does to a journal; null if nothing is lost. @throws UsageError for a fate that is none */
export function damageJournal(
  damaged: Journal<unknown>,
  { journal: fate, record }: CrashFate,
  now: number,
  chance: Random,
): Damage | null {
  const { length } = damaged.records;
  switch (fate) {
    case "kept":
      return null;
    case "lost":
      damaged.clear();
      return { what: "journal lost", unsynced: 0 };
    case "synced": {
      const unsynced = damaged.loseUnsynced(now);
      const what = `journal lost its last ${unsynced === 1 ? "record" : `${unsynced} records`}`;
      return unsynced === 0 ? null : { what, unsynced };
    }
    case "corrupted": {
      if (length === 0) return null;
      const at = record ?? chance.below(length);
      if (!(Number.isInteger(at) && at >= 0 && at < length))
        throw new UsageError("bad-fate", unexpected("the damaged record", `from 0 to ${length - 1}`, at));
      damaged.damage(at);
      return { what: `journal damaged at record ${at + 1} of ${length}`, unsynced: 0 };
    }
    default:
      throw new UsageError("bad-fate", unexpected("the journal's fate", "kept, synced, lost or corrupted", fate));
  }
}
