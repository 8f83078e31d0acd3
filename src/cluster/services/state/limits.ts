import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../../protocols/service/coordination-service/operations.ts";

/** The limits on calls. The state machine enforces them too. */
export const limits = {
  keyBytes: 512,
  /** The maximum size of a range bound. */
  boundBytes: MAX_KEY_BYTES,
  /** The maximum size of a value, as JSON, or as base64 for bytes. */
  valueBytes: MAX_VALUE_BYTES,
  /** The maximum size of a leader's metadata. */
  noteBytes: 4_096,
  /** The maximum number of entries in the result of one `range` call. */
  range: 1_000,
  /** The maximum number of keys that a transaction can read or write. */
  transactionKeys: 64,
  /** The maximum backlog of a slow watch: the number of changes, and the characters in their keys and values. */
  backlogChanges: 1_000,
  backlogChars: 8_388_608,
} as const;
