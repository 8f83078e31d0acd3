/**
 * The clock that orders trace entries from different processes. It is based on the system time, which all processes on
 * a machine share, but has a finer resolution than milliseconds and does not go back after small corrections.
 */

/** The two clocks that the wall clock is based on, both in milliseconds. */
export interface TimeSources {
  /** Returns the system time in whole milliseconds since 1970, rounded down. The system time can be set. */
  readonly system: () => number;
  /** Returns the time of a monotonic clock, with a fractional part. The clock stops while the machine sleeps. */
  readonly steady: () => number;
}

/** If the system clock goes back by more than this, it has been set, and this clock follows it. */
const MAX_STEP_BACK_MS = 100;

export function wallClockFrom({ system, steady }: TimeSources): () => number {
  let origin = system() - steady();
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const whole = system();
    const time = origin + steady();
    // The true time is in [whole, whole + 1). Clamping to that range on each call soon makes the origin exact, so that
    // all processes agree.
    const held = Math.min(Math.max(time, whole), whole + 1);
    origin += held - time;
    last = last - held > MAX_STEP_BACK_MS ? held : Math.max(last, held);
    return last;
  };
}

/** Returns the milliseconds since 1970, with a fractional part. */
export const wallClock = wallClockFrom({ system: () => Date.now(), steady: () => performance.now() });
