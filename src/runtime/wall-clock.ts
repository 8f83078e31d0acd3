/**
 * What trace entries of different processes are put in order by: the system's time, finer than a millisecond and never
 * going backwards in small steps, as the system's own does when it is corrected.
 */

/** Both in milliseconds. */
export interface TimeSources {
  /** The system's time, which may be set; since 1970. */
  readonly system: () => number;
  /** Time that only goes forwards, and stands still while the machine sleeps. */
  readonly steady: () => number;
}

/** Further from the system's time than this, the machine has slept or its clock was set, and we follow. */
const MAX_DRIFT_MS = 100;

export function wallClockFrom({ system, steady }: TimeSources): () => number {
  let origin = system() - steady();
  return () => {
    const time = origin + steady();
    const actual = system();
    if (Math.abs(time - actual) <= MAX_DRIFT_MS) return time;
    origin += actual - time;
    return actual;
  };
}

/** Milliseconds since 1970, with fractions. */
export const wallClock = wallClockFrom({ system: () => Date.now(), steady: () => performance.now() });
