/** Detects pauses of this process or of the whole machine. Timers that were due during a pause fire late. */
import type { Platform } from "../../runtime/platform/platform.ts";

const EVERY_MS = 100;
/** The shortest pause to report. Shorter ones are normal on a busy machine. */
const STALL_MS = 250;

/**
 * Calls `onStall` with the length of each pause. Does not keep the process alive.
 * @returns a function that stops the detection
 */
export function watchStalls({ clock, timers }: Platform, onStall: (forMs: number) => void): () => void {
  let steady = clock.now();
  let wall = clock.wall();
  const look = (): void => {
    const now = { steady: clock.now(), wall: clock.wall() };
    // The monotonic clock stops while a machine sleeps, and the wall clock may be set, so use the larger difference.
    const forMs = Math.max(now.steady - steady, now.wall - wall) - EVERY_MS;
    ({ steady, wall } = now);
    if (forMs > STALL_MS) onStall(Math.round(forMs));
  };
  const timer = timers.every(EVERY_MS, look).unref();
  return () => timers.cancel(timer);
}
