/**
 * The journal: data that must survive a crash of its process. A journal has any number of slots, one for each protocol that
 * runs in the process. `openJournal` (`disk-journal.ts`) stores one in a directory.
 */
import type { Shape } from "../../core/shape.ts";

export interface Journal {
  /**
   * Takes the slot with this name: its records, and the right to append.
   * @param shape of its records. Records in the slot must have it, even if an earlier version of the program wrote them.
   * @throws UsageError if the slot is taken, EnvironmentError if its records have another shape
   */
  slot<R>(name: string, shape: Shape<R>): Slot<R>;
  /** Whether a slot of this name exists: it was taken in this or an earlier run of the process, and not deleted since. */
  has(name: string): boolean;
  /**
   * Deletes the slot with this name and all its records. Does nothing if it does not exist. Durable with the next append.
   * @throws UsageError if the slot is taken
   */
  forget(name: string): void;
  /** Makes all records durable, then closes the journal. Nothing can be appended afterwards. */
  close(): Promise<void>;
}

export interface Slot<R> {
  /** The records of the slot, in order, even if not yet durable. Each access reads them from the disk. */
  readonly records: readonly R[];
  /** Appends a record. @throws InvariantViolation if the record does not have the slot's shape, or is too large */
  append(record: R): void;
  /**
   * Replaces all records of this slot by these, at least one. If a crash happens before they are durable, the old records
   * remain.
   */
  compact(records: readonly R[]): void;
  /**
   * Calls back once everything appended to this slot so far is durable. Callbacks run in the order of the calls, and never
   * before this returns. If the disk fails they never run, and the journal calls `onFailure` instead.
   */
  whenDurable(then: () => void): void;
  /** Releases the slot, so that it can be taken again. Its records stay. */
  release(): void;
}
