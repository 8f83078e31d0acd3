/** Follows work that is done in slices: shows how far it has come, and stops it on Ctrl-C. */
import { setImmediate as otherWork } from "node:timers/promises";
import type { Slices } from "../experiment/simulate.ts";
import { ExitWith } from "./exit-with.ts";
import type { Output } from "./invocation.ts";
import { progressLine } from "./progress.ts";
import { onceUnread } from "./unread.ts";

/**
 * A second Ctrl-C ends the process at once.
 *
 * @throws ExitWith 0 once nobody reads what is printed
 */
export async function followed<P, T>(slices: Slices<P, T>, stderr: Output, text: (progress: P) => string): Promise<T> {
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
  };
  process.once("SIGINT", stop);
  let isUnread = false;
  const listened = onceUnread(() => {
    isUnread = true;
    stop();
  });
  const line = progressLine(stderr);
  try {
    let slice = slices.next(true);
    while (slice.done !== true) {
      const { value } = slice;
      line.show(() => text(value));
      await otherWork();
      slice = slices.next(!isStopped);
    }
    if (isUnread) throw new ExitWith(0);
    return slice.value;
  } finally {
    line.clear();
    process.removeListener("SIGINT", stop);
    listened();
  }
}
