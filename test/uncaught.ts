/** Collects uncaught errors in a test that expects them, so that they do not fail the test run. */

/** Resolves with the uncaught errors that occurred while `body` ran, in order. */
export async function uncaughtDuring(body: () => unknown): Promise<unknown[]> {
  const others = process.listeners("uncaughtException");
  const caught: unknown[] = [];
  const take = (error: unknown): void => void caught.push(error);
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", take);
  try {
    await body();
    await new Promise((resolve) => setImmediate(resolve)); // Wait for pending microtasks.
  } finally {
    process.off("uncaughtException", take);
    for (const other of others) process.on("uncaughtException", other);
  }
  return caught;
}
