/** Node fires a timer at once if it is to wait longer than this. */
export const MAX_WAIT_MS = 2 ** 31 - 1;
