/**
 * What trace entries of different processes are put in order by: the system's time, which all processes of a machine
 * share, finer than the whole milliseconds that it is told in, and not going back when it is corrected a little.
 */

/** Both in milliseconds. */
export interface TimeSources {
  /** The system's time in whole milliseconds since 1970, rounded down. It may be set. */
  readonly system: () => number;
  /** Time that only goes forwards, in fractions, and stands still while the machine sleeps. */
  readonly steady: () => number;
}

/** Further back than this, the clock was set, and we follow. */
const MAX_STEP_BACK_MS = 100;

export function wallClockFrom({ system, steady }: TimeSources): () => number {
  let origin = system() - steady();
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const whole = system();
    const time = origin + steady();
    // The true time is in [whole, whole + 1). Held to that at each call, the origin is soon exact: two processes agree.
    const held = Math.min(Math.max(time, whole), whole + 1);
    origin += held - time;
    last = last - held > MAX_STEP_BACK_MS ? held : Math.max(last, held);
    return last;
  };
}

/** Milliseconds since 1970, with fractions. */
export const wallClock = wallClockFrom({ system: () => Date.now(), steady: () => performance.now() });
