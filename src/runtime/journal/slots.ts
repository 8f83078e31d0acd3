/** The slots of a journal, as it keeps them in memory. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { type ShapeNode, struct } from "../../core/shape.ts";
import type { Declaration } from "./batches.ts";

/** A slot: what the file has of it, and how it is used now. */
export interface Kept {
  readonly number: number;
  /** As the file declares it; of a slot that is free, without a name. */
  declared: Declaration;
  /** The shape of its records from now on, also if the file does not say so yet. */
  shape: ShapeNode;
  /** Where its durable records are in the file: offset, length, offset, length … */
  places: number[];
  /** Of its records in the file. */
  bytes: number;
  /** How much replaced its records last: what replaces them next will be about as much. */
  compactedBytes: number;
  isTaken: boolean;
  /** The numbers of the chunks that its durable records refer to; null until the records have been read. */
  chunks: Set<number> | null;
}

/** Of a slot that is free. */
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
  throw new UsageError("slot-taken", unexpected("the slot of the journal", "one that nobody has taken", name));
}

/** The order of fields and variants counts: it is their order on the disk. */
export const isSame = (a: ShapeNode, b: ShapeNode): boolean => JSON.stringify(a) === JSON.stringify(b);
