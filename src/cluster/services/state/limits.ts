import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../../protocols/service/coordination-service/operations.ts";

/** How much of everything: what callers are told, and what the state machine refuses as well. */
export const limits = {
  keyBytes: 512,
  /** Of what bounds a range. */
  boundBytes: MAX_KEY_BYTES,
  /** Of a value as JSON, or of bytes as base64. */
  valueBytes: MAX_VALUE_BYTES,
  /** What others are told of a leader. */
  noteBytes: 4_096,
  /** Entries that one `range` gives. */
  range: 1_000,
  /** Keys that one transaction reads and writes. */
  transactionKeys: 64,
  /** What waits for a slow watch: changes, and characters of their keys and values. */
  backlogChanges: 1_000,
  backlogChars: 8_388_608,
} as const;
