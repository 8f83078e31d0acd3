/** Measures the heap size after garbage collection. */
export function heapUsedBytes(): number {
  // This needs a flag when the test process starts, because V8 may fail if flags are changed at run time.
  if (globalThis.gc === undefined)
    throw new Error("expected a process with --expose-gc, as vitest.config.ts starts them");
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
