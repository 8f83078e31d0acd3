/** The longest timeout. Node fires a timer immediately if its timeout is longer than this. */
export const MAX_WAIT_MS = 2 ** 31 - 1;
