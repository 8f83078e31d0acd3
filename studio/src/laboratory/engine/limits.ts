/** How much the laboratory takes in, and shows. */

/** Entries of a recording that are opened at once. A longer one is opened in parts. */
export const MAX_OPENED = 300_000;
/** Characters of its file. Of a larger file the beginning is opened. */
export const MAX_TEXT = 100_000_000;
/** How long properties are checked in a recording, in milliseconds: those of Raft's log can take minutes. */
export const CHECKS_MS = 10_000;
/** Entries that are drawn: more take long to hand over. */
export const MAX_DRAWN = 150_000;
/** Nodes of a run or check that a link or form names. */
export const MAX_NODES = 100;
/** Entries of a run that is made here: more would fill the memory of the page. */
export const MAX_MADE = 500_000;
