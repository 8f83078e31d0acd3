/** Notices that this process, or the whole machine, stood still: timers that were due meanwhile come late. */

const EVERY_MS = 100;
/** Shorter pauses are what a busy machine has anyhow. */
const STALL_MS = 250;

/** Calls back with the length of each pause, until what is returned is called. Keeps no process alive. */
export function watchStalls(onStall: (forMs: number) => void): () => void {
  let steady = performance.now();
  let wall = Date.now();
  const timer = setInterval(() => {
    const now = { steady: performance.now(), wall: Date.now() };
    // The steady clock stands still while a machine sleeps, the other may be set: the longer pause counts.
    const forMs = Math.max(now.steady - steady, now.wall - wall) - EVERY_MS;
    ({ steady, wall } = now);
    if (forMs > STALL_MS) onStall(Math.round(forMs));
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}
