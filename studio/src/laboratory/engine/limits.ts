/** The limits of the laboratory. */

/** The maximum number of entries opened at once. Longer recordings are opened in parts. */
export const MAX_OPENED = 300_000;
/** The maximum number of characters to read. For larger files, only the beginning is opened. */
export const MAX_TEXT = 100_000_000;
/**
 * The time limit for checking the properties of a recording, in milliseconds. Raft's log properties can take minutes.
 */
export const CHECKS_MS = 10_000;
/** The maximum number of entries to draw. Transferring more would take too long. */
export const MAX_DRAWN = 150_000;
export const MAX_NODES = 100;
/** The maximum number of entries in a run that is simulated here. More would fill the page's memory. */
export const MAX_MADE = 500_000;
