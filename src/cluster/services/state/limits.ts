import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../../protocols/service/coordination-service/operations.ts";

/** Limits of calls, which the state machine enforces too. */
export const limits = {
  keyBytes: 512,
  /** The bound of a range. */
  boundBytes: MAX_KEY_BYTES,
  /** A value as JSON, or bytes as base64. */
  valueBytes: MAX_VALUE_BYTES,
  /** The metadata of a leader. */
  noteBytes: 4_096,
  /** Entries of one `range`. */
  range: 1_000,
  /** Keys that one transaction reads and writes. */
  transactionKeys: 64,
  /** The backlog of a slow watch: changes, and characters of their keys and values. */
  backlogChanges: 1_000,
  backlogChars: 8_388_608,
} as const;
