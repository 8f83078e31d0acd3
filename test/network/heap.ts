/** The size of the heap after garbage collection. */
export function heapUsedBytes(): number {
  // Needs a flag of the test processes: V8 may fail if flags change while it runs.
  if (globalThis.gc === undefined)
    throw new Error("expected a process with --expose-gc, as vitest.config.ts starts them");
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
