/** What a program throws where nobody catches it: a test that expects some takes it, and nothing fails for it meanwhile. */

/** Errors that nobody caught while `body` ran, in their order. */
export async function uncaughtDuring(body: () => unknown): Promise<unknown[]> {
  const others = process.listeners("uncaughtException");
  const caught: unknown[] = [];
  const take = (error: unknown): void => void caught.push(error);
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", take);
  try {
    await body();
    await new Promise((resolve) => setImmediate(resolve)); // Microtasks have run by then.
  } finally {
    process.off("uncaughtException", take);
    for (const other of others) process.on("uncaughtException", other);
  }
  return caught;
}
