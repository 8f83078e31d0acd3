/** The journal of a simulated node. Writes to its disk take time, and the disk may be damaged. */
import { EnvironmentError, UsageError, unexpected } from "../core/errors.ts";
import { slotReplacedBy } from "../core/journal-slots.ts";
import { clone } from "../core/plain.ts";
import type { NodeId, Slot } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";

/** The state of a journal after its node crashes. */
export type JournalFate =
  | "kept"
  /** Records that were not durable are lost. */
  | "synced"
  | "lost"
  /**
   * One record, chosen by the seed, is damaged. If it is the last one, a restart discards it, like a write torn by the
   * crash. If other records follow it, the node refuses to start and throws an `EnvironmentError`.
   */
  | "corrupted";

/** What happens to a journal in a crash. */
export interface CrashFate {
  /** The effect of the crash on the journal. */
  readonly journal: JournalFate;
  /** The index of the damaged record in a corrupted journal, starting from 0. Default: chosen by the seed. */
  readonly record?: number;
}

export interface Journal<R> {
  append(record: R, durableAt: number): void;
  /**
   * Replaces all records in a slot with the given ones. A crash may restore the replaced records until the new ones are
   * durable.
   */
  compact(records: readonly R[], durableAt: number): void;
  /** Makes everything written so far durable. */
  sync(): void;
  /** Discards the records that are not durable at `now`. Returns the number of lost writes. */
  loseUnsynced(now: number): number;
  /** Damages the record at this index. */
  damage(index: number): void;
  readonly records: readonly R[];
  /** The records before the first unreadable one. */
  readonly legible: readonly R[];
  clear(): void;
  /** Returns the records for a restart of `node`. @throws EnvironmentError if any record except the last is damaged */
  replay(node: NodeId): readonly R[];
}

interface Write<R> {
  readonly record: R;
  readonly slot: Slot;
  /** Whether the write replaces the earlier records in its slot. */
  readonly replaces: boolean;
  /** Records with the same number were written together, so either all of them survive or none do. */
  readonly group: number;
  durableAt: number;
}

class SlottedJournal<R> implements Journal<R> {
  readonly #slotOf: (record: R) => Slot;
  #writes: Write<R>[] = [];
  #syncedCount = 0;
  #damaged: number | null = null;
  #group = 0;

  constructor(slotOf: (record: R) => Slot) {
    this.#slotOf = slotOf;
  }

  get records(): readonly R[] {
    return recordsOf(left(this.#writes));
  }

  get legible(): readonly R[] {
    if (this.#damaged === null) return this.records;
    return this.#isTorn(this.#damaged) ? recordsOf(left(this.#withoutLast())) : this.records.slice(0, this.#damaged);
  }

  append(record: R, durableAt: number): void {
    this.#write([record], false, durableAt);
  }

  compact(replacing: readonly R[], durableAt: number): void {
    this.#forget(slotReplacedBy(replacing, this.#slotOf));
    this.#write(replacing, true, durableAt);
  }

  sync(): void {
    for (; this.#syncedCount < this.#writes.length; this.#syncedCount++)
      (this.#writes[this.#syncedCount] as Write<R>).durableAt = Number.NEGATIVE_INFINITY;
  }

  loseUnsynced(now: number): number {
    const before = this.#writes.length;
    this.#writes = this.#writes.filter(({ durableAt }) => durableAt <= now);
    this.#syncedCount = this.#writes.length;
    return before - this.#writes.length;
  }

  damage(index: number): void {
    this.#damaged = index;
  }

  clear(): void {
    this.#writes = [];
    this.#syncedCount = 0;
  }

  replay(node: NodeId): readonly R[] {
    const { length } = left(this.#writes);
    if (this.#damaged !== null && !this.#isTorn(this.#damaged))
      throw new EnvironmentError(
        "damaged-journal",
        `the journal of node ${node} is damaged: record ${this.#damaged + 1} of ${length} cannot be read, so the node does not start`,
      );
    if (this.#damaged !== null) this.#writes = this.#withoutLast();
    this.#damaged = null;
    return clone(this.records);
  }

  #write(records: readonly R[], isCompaction: boolean, durableAt: number): void {
    this.#group += 1;
    for (const [i, record] of records.entries())
      this.#writes.push({
        record: clone(record),
        slot: this.#slotOf(record),
        replaces: isCompaction && i === 0,
        group: this.#group,
        durableAt,
      });
  }

  /**
   * Whether the damaged record counts as torn. A crash can tear only the last write. Damage before it is detected, and
   * then nothing is read.
   */
  #isTorn(at: number): boolean {
    return left(this.#writes)[at]?.group === this.#writes.at(-1)?.group;
  }

  #withoutLast(): Write<R>[] {
    return this.#writes.filter((each) => each.group !== this.#writes.at(-1)?.group);
  }

  /** Discards replaced records whose replacement is durable. They can no longer be restored. */
  #forget(slot: Slot): void {
    const settled = this.#writes.findLastIndex(
      (each, i) => each.replaces && each.slot === slot && i < this.#syncedCount,
    );
    const before = this.#writes.length;
    this.#writes = this.#writes.filter((each, i) => each.slot !== slot || i >= settled);
    this.#syncedCount -= before - this.#writes.length;
  }
}

/** Creates an empty journal. @param slotOf returns the part of an assembly that a record belongs to */
export const journal = <R>(slotOf: (record: R) => Slot = () => ""): Journal<R> => new SlottedJournal(slotOf);

/** Returns the writes that have not been replaced. */
function left<R>(writes: readonly Write<R>[]): readonly Write<R>[] {
  const replaced = new Set<Slot>();
  return writes
    .toReversed()
    .filter(({ slot, replaces }) => {
      const isLeft = !replaced.has(slot);
      if (replaces) replaced.add(slot);
      return isLeft;
    })
    .reverse();
}

const recordsOf = <R>(writes: readonly Write<R>[]): readonly R[] => writes.map(({ record }) => record);

interface Damage {
  readonly what: string;
  /** The number of records that were lost because they were not durable. */
  readonly unsynced: number;
}

/** Applies a crash to a journal. Returns null if nothing is lost. @throws UsageError if the fate is unknown */
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
