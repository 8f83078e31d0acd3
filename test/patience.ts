/** How long a test may run. This is longer than any stall of a busy machine. Tests and waits have no other deadline. */
export const TEST_TIMEOUT_MS = 600_000;

/** How long a wait may take. It fails with its last observation, shortly before the test itself times out. */
export const PATIENCE_MS = TEST_TIMEOUT_MS - 30_000;

/** Options for `vi.waitFor` and `vi.waitUntil`. They are the default of `expect.poll`. */
export const PATIENCE = { timeout: PATIENCE_MS, interval: 5 } as const;
