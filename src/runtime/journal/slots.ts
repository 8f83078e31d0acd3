/** A journal's slots in memory. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { type ShapeNode, struct } from "../../core/shape.ts";
import type { Declaration } from "./batches.ts";

/** A slot: its data in the file, and its current use. */
export interface Kept {
  readonly number: number;
  /** The slot's declaration in the file. A free slot has no name. */
  declared: Declaration;
  /** The shape of the records to be written next, even if the file does not declare it yet. */
  shape: ShapeNode;
  /** The positions of the slot's durable records in the file: offset, length, offset, length, … */
  places: number[];
  /** The total size of the slot's records in the file. */
  bytes: number;
  /** The size of the slot's last replacement. The next one will be about as large. */
  compactedBytes: number;
  isTaken: boolean;
  /** The numbers of the chunks that the slot's durable records refer to. Null until the records have been read. */
  chunks: Set<number> | null;
}

/** The declaration of a free slot. */
export const NOBODY: Declaration = { name: "", shape: struct({}) };
/** The maximum length of a slot's name. */
export const MAX_NAME_LENGTH = 200;

/** Returns a slot without records. */
export const newlyKept = (number: number, declared: Declaration, shape: ShapeNode): Kept => ({
  number,
  declared,
  shape,
  places: [],
  bytes: 0,
  compactedBytes: 0,
  isTaken: false,
  chunks: null,
});

export const tooMany = (maxSlots: number, name: string): UsageError =>
  new UsageError(
    "too-many-slots",
    `expected at most ${maxSlots} slots in the journal, but ${name} would exceed this limit`,
  );

/** @throws UsageError `slot-taken` if the slot is in use */
export function requireFree({ isTaken }: Kept, name: string): void {
  if (!isTaken) return;
  throw new UsageError("slot-taken", unexpected("the journal slot", "unused", name));
}

/** Whether two shapes are the same. The order of their fields and variants matters, because it is the order on disk. */
export const isSame = (a: ShapeNode, b: ShapeNode): boolean => JSON.stringify(a) === JSON.stringify(b);
