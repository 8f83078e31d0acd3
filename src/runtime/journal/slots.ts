/** The slots of a journal in memory. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { type ShapeNode, struct } from "../../core/shape.ts";
import type { Declaration } from "./batches.ts";

/** A slot: its data in the file, and its current use. */
export interface Kept {
  readonly number: number;
  /** The declaration in the file. A free slot has no name. */
  declared: Declaration;
  /** The shape of its next records, even if the file does not declare it yet. */
  shape: ShapeNode;
  /** The positions of its durable records in the file: offset, length, offset, length … */
  places: number[];
  /** The total size of its records in the file. */
  bytes: number;
  /** The size of its last replacement. The next one will be about as large. */
  compactedBytes: number;
  isTaken: boolean;
  /** The numbers of the chunks that its durable records refer to. Null until the records have been read. */
  chunks: Set<number> | null;
}

/** The declaration of a free slot. */
export const NOBODY: Declaration = { name: "", shape: struct({}) };
export const MAX_NAME_LENGTH = 200;

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
  new UsageError("too-many-slots", `expected at most ${maxSlots} slots in the journal, and ${name} is one more`);

export function requireFree({ isTaken }: Kept, name: string): void {
  if (!isTaken) return;
  throw new UsageError("slot-taken", unexpected("the slot of the journal", "unused", name));
}

/** The order of fields and variants matters, because it is their order on disk. */
export const isSame = (a: ShapeNode, b: ShapeNode): boolean => JSON.stringify(a) === JSON.stringify(b);
