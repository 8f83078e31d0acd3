/** The size of the heap without what nobody needs any more. */
export function heapUsedBytes(): number {
  // By a flag of the test processes: V8 does not promise to survive flags that change while it runs.
  if (globalThis.gc === undefined)
    throw new Error("expected a process with --expose-gc, as vitest.config.ts starts them");
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
