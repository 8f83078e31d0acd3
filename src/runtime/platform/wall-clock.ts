/**
 * The clock that orders trace entries of different processes. It is based on the system time, which all processes of a machine
 * share, but is finer than its whole milliseconds and does not go back after small corrections.
 */

/** Both in milliseconds. */
export interface TimeSources {
  /** The system time in whole milliseconds since 1970, rounded down. It may be set. */
  readonly system: () => number;
  /** A monotonic clock with fractions. It stops while the machine sleeps. */
  readonly steady: () => number;
}

/** If the system clock goes back further than this, it was set, and we follow. */
const MAX_STEP_BACK_MS = 100;

export function wallClockFrom({ system, steady }: TimeSources): () => number {
  let origin = system() - steady();
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const whole = system();
    const time = origin + steady();
    // The true time is in [whole, whole + 1). Clamping to that range at each call soon makes the origin exact, so that
    // processes agree.
    const held = Math.min(Math.max(time, whole), whole + 1);
    origin += held - time;
    last = last - held > MAX_STEP_BACK_MS ? held : Math.max(last, held);
    return last;
  };
}

/** Milliseconds since 1970, with fractions. */
export const wallClock = wallClockFrom({ system: () => Date.now(), steady: () => performance.now() });
