/**
 * The journal: what must outlive a crash of its process. A journal has any number of slots, one for each protocol that
 * runs in the process. `openJournal` (`disk-journal.ts`) keeps one in a directory.
 */
import type { Shape } from "../../core/shape.ts";

export interface Journal {
  /**
   * Takes the slot of this name: what it holds, and the right to add to it.
   * @param shape of its records. What the slot holds must have it, also if an earlier version of a program wrote it.
   * @throws UsageError if the slot is taken already, EnvironmentError if what it holds has another shape.
   */
  slot<R>(name: string, shape: Shape<R>): Slot<R>;
  /** Whether a slot of this name was ever taken, in this run of the process or before, and not forgotten since. */
  has(name: string): boolean;
  /**
   * Frees the slot of this name with all that it holds, for another name; nothing where there is none. Durable with what is appended next to it.
   * @throws UsageError if the slot is taken.
   */
  forget(name: string): void;
  /** Makes durable what it was given, then lets go of where it is kept. Nothing may be appended after that. */
  close(): Promise<void>;
}

export interface Slot<R> {
  /** What the slot holds, in order, also if it is not durable yet. It is read from where it is kept, and not held here. */
  readonly records: readonly R[];
  /** @throws InvariantViolation if the record has not the slot's shape, or is larger than a record may be. */
  append(record: R): void;
  /** Replaces all records of this slot by these, at least one. A crash before they are durable brings back those that they replace. */
  compact(records: readonly R[]): void;
  /**
   * Calls back once everything is durable that this slot has been given so far: in the order of the calls, and never
   * before it returns. If the disk fails it never calls back; the journal's `onFailure` is told instead.
   */
  whenDurable(then: () => void): void;
  /** Gives the slot back, so that it can be taken again. What it holds stays. */
  release(): void;
}
