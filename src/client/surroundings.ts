/** A clock, timers and randomness that are available both in browsers and in Node. */
import type { Platform, Timer } from "../runtime/platform/platform.ts";

/** A timer. Browsers identify timers by numbers, which have no `unref()`. */
class OwnTimer implements Timer {
  readonly #handle: ReturnType<typeof setTimeout>;
  constructor(handle: ReturnType<typeof setTimeout>) {
    this.#handle = handle;
  }

  unref(): this {
    if (typeof this.#handle === "object") this.#handle.unref();
    return this;
  }

  cancel(): void {
    clearTimeout(this.#handle); // This also clears intervals.
  }
}

/** The range of each half of a random natural number. */
const HALF = 2 ** 24;

/** The platform on which clients run. */
export const surroundings: Pick<Platform, "clock" | "timers" | "random"> = {
  clock: {
    now: () => performance.now(),
    wall: () => Date.now(),
    stamp: () => performance.timeOrigin + performance.now(),
  },
  timers: {
    after: (ms, run) => new OwnTimer(setTimeout(run, ms)),
    every: (ms, run) => new OwnTimer(setInterval(run, ms)),
    soon: (run) => new OwnTimer(setTimeout(run, 0)),
    cancel: (timer) => (timer as OwnTimer | null)?.cancel(),
  },
  random: {
    fraction: () => Math.random(),
    natural: (below) => {
      const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
      return ((high % HALF) * HALF + (low % HALF)) % below;
    },
    name: () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-"),
  },
};
