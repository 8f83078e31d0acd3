/** Limits how many requests are sent at the same time, and determines the delay before a retry. */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";

const FIRST_MS = 2;
const LAST_MS = 200;

/** Waits longer after each attempt, with random jitter, so that processes that have collided do not collide again. */
export class Retrying {
  readonly #platform: Pick<Platform, "timers" | "random">;

  constructor(platform: Pick<Platform, "timers" | "random">) {
    this.#platform = platform;
  }

  /** @param tries the number of failed attempts */
  pause(tries: number): Promise<void> {
    const most = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(tries, 10));
    return sleep(this.#platform.timers, (0.5 + this.#platform.random.fraction()) * most, { ref: false });
  }
}

const AT_ONCE = 32;

/** Limits the number of concurrent calls, since they all share one connection. */
export async function fewAtOnce<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(work));
}
