/** Detects that this process, or the whole machine, was paused: timers that were due meanwhile fire late. */
import type { Platform } from "../../runtime/platform/platform.ts";

const EVERY_MS = 100;
/** Shorter pauses are normal on a busy machine. */
const STALL_MS = 250;

/** Calls back with the length of each pause. Does not keep the process alive. @returns a function that ends it */
export function watchStalls({ clock, timers }: Platform, onStall: (forMs: number) => void): () => void {
  let steady = clock.now();
  let wall = clock.wall();
  const look = (): void => {
    const now = { steady: clock.now(), wall: clock.wall() };
    // The steady clock stops while a machine sleeps, and the wall clock may be set: the longer difference counts.
    const forMs = Math.max(now.steady - steady, now.wall - wall) - EVERY_MS;
    ({ steady, wall } = now);
    if (forMs > STALL_MS) onStall(Math.round(forMs));
  };
  const timer = timers.every(EVERY_MS, look).unref();
  return () => timers.cancel(timer);
}
