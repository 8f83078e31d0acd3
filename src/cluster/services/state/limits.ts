import { MAX_VALUE_BYTES } from "../../../protocols/service/coordination-service/operations.ts";

/** How much of everything: what callers are told, and what the state machine refuses as well. */
export const limits = {
  keyBytes: 512,
  /** Of a value as JSON, or of bytes as base64. */
  valueBytes: MAX_VALUE_BYTES,
  /** What others are told of a leader. */
  noteBytes: 4_096,
  /** Entries that one `range` gives. */
  range: 1_000,
  /** Keys that one transaction reads and writes. */
  transactionKeys: 64,
} as const;
