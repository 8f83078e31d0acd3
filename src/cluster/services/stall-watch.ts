/** Notices that this process, or the whole machine, stood still: timers that were due meanwhile come late. */
import type { Platform } from "../../runtime/platform/platform.ts";

const EVERY_MS = 100;
/** Shorter pauses are what a busy machine has anyhow. */
const STALL_MS = 250;

/** Calls back with the length of each pause, until what is returned is called. Keeps no process alive. */
export function watchStalls({ clock, timers }: Platform, onStall: (forMs: number) => void): () => void {
  let steady = clock.now();
  let wall = clock.wall();
  const look = (): void => {
    const now = { steady: clock.now(), wall: clock.wall() };
    // The steady clock stands still while a machine sleeps, the other may be set: the longer pause counts.
    const forMs = Math.max(now.steady - steady, now.wall - wall) - EVERY_MS;
    ({ steady, wall } = now);
    if (forMs > STALL_MS) onStall(Math.round(forMs));
  };
  const timer = timers.every(EVERY_MS, look).unref();
  return () => timers.cancel(timer);
}
