/** Limits on the size of a journal. */
export interface JournalLimits {
  readonly maxRecordBytes: number;
  readonly maxSlots: number;
  readonly maxFileBytes: number;
  /** The limit of bytes that wait for the disk. */
  readonly maxPendingBytes: number;
  /** A smaller file is not rewritten, even if most of it has been replaced. */
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
