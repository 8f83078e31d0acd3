/** How long to wait before the same is tried again, so that those who are in each other's way part. */
import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";

const FIRST_MS = 2;
const LAST_MS = 200;

export class Retrying {
  readonly #platform: Pick<Platform, "timers" | "random">;

  constructor(platform: Pick<Platform, "timers" | "random">) {
    this.#platform = platform;
  }

  /** @param tries how often it has failed before. */
  pause(tries: number): Promise<void> {
    const most = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(tries, 10));
    return sleep(this.#platform.timers, (0.5 + this.#platform.random.fraction()) * most, { ref: false });
  }
}
