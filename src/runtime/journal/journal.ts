/**
 * The journal stores data that must survive a crash of its process. It has any number of slots, one for each protocol
 * that runs in the process. `openJournal` (`disk-journal.ts`) stores a journal in a directory.
 */
import type { Shape } from "../../core/shape.ts";

/** An open journal. No other process can write to it. */
export interface Journal {
  /**
   * Opens the slot with this name, or creates it if it does not exist. The caller owns it until `release`.
   * @param shape the shape of the slot's records. All of its records must have this shape, even those written by an
   * earlier version of the program.
   * @throws UsageError if the slot is taken, EnvironmentError if its records have a different shape
   */
  slot<R>(name: string, shape: Shape<R>): Slot<R>;
  /**
   * Whether a slot with this name exists. It does if it was opened in this or an earlier run of the process and has not
   * been deleted since.
   */
  has(name: string): boolean;
  /**
   * Deletes the slot with this name and all its records. Does nothing if the slot does not exist. The deletion becomes
   * durable with the next append.
   * @throws UsageError if the slot is taken
   */
  forget(name: string): void;
  /** Makes all records durable, then closes the journal. Nothing can be appended afterwards. */
  close(): Promise<void>;
}

/** The part of a journal that belongs to one protocol. */
export interface Slot<R> {
  /** The slot's records in order, including those that are not yet durable. Each access reads them from the disk. */
  readonly records: readonly R[];
  /**
   * Appends a record.
   * @throws InvariantViolation if the record does not have the slot's shape, or is too large
   */
  append(record: R): void;
  /**
   * Replaces all of this slot's records with these. At least one is required. If a crash happens before they are
   * durable, the old records remain.
   */
  compact(records: readonly R[]): void;
  /**
   * Calls `then` once everything appended to this slot so far is durable. Callbacks run in the order they were passed,
   * and never before this method returns. If the disk fails, they never run, and the journal calls `onFailure` instead.
   */
  whenDurable(then: () => void): void;
  /** Releases the slot, so that it can be taken again. Its records are retained. */
  release(): void;
}
