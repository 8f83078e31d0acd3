/** The longest possible timeout. If a timeout is longer, Node fires the timer immediately. */
export const MAX_WAIT_MS = 2 ** 31 - 1;
