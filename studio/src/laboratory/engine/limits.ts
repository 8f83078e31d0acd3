/** How much the laboratory takes in, and shows. */

/** Entries of a recording: properties are looked at after each of them, which for Raft's log takes a minute. */
export const MAX_OPENED = 100_000;
/** Bytes of its file. No character takes less than one. */
export const MAX_BYTES = 100_000_000;
/** Entries that are drawn: more take long to hand over. */
export const MAX_DRAWN = 150_000;
