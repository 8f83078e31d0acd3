/** Limits on the size of a journal. */
export interface JournalLimits {
  readonly maxRecordBytes: number;
  readonly maxSlots: number;
  readonly maxFileBytes: number;
  /** The maximum number of bytes waiting to be written to the disk. */
  readonly maxPendingBytes: number;
  /** The minimum size for rewriting. A smaller file is not rewritten, even if most of it has been replaced. */
  readonly rewriteFromBytes: number;
}

const MiB = 1024 * 1024;

export const defaultLimits: JournalLimits = {
  maxRecordBytes: 16 * MiB,
  maxSlots: 10_000,
  maxFileBytes: 1024 * MiB,
  maxPendingBytes: 64 * MiB,
  rewriteFromBytes: MiB,
};
