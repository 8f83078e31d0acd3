/** The limits of the laboratory. */

/** Entries of a recording that are opened at once. A longer one is opened in parts. */
export const MAX_OPENED = 300_000;
/** Characters of a file. A larger file is opened at its beginning only. */
export const MAX_TEXT = 100_000_000;
/** How long properties of a recording are checked, in milliseconds: Raft's log properties can take minutes. */
export const CHECKS_MS = 10_000;
/** Entries that are drawn: more take long to transfer. */
export const MAX_DRAWN = 150_000;
/** The most nodes of a run or check. */
export const MAX_NODES = 100;
/** Entries of a run that is simulated here: more would fill the page's memory. */
export const MAX_MADE = 500_000;
