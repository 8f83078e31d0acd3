/** Follows work that is done in slices: shows how far it has come, and stops it on Ctrl-C. */
import { setImmediate as otherWork } from "node:timers/promises";
import type { Slices } from "../experiment/simulate.ts";
import type { Output } from "./invocation.ts";
import { progressLine } from "./progress.ts";

/** A second Ctrl-C ends the process at once. */
export async function followed<P, T>(slices: Slices<P, T>, stderr: Output, text: (progress: P) => string): Promise<T> {
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
  };
  process.once("SIGINT", stop);
  const line = progressLine(stderr);
  try {
    let slice = slices.next(true);
    while (slice.done !== true) {
      const { value } = slice;
      line.show(() => text(value));
      await otherWork();
      slice = slices.next(!isStopped);
    }
    return slice.value;
  } finally {
    line.clear();
    process.removeListener("SIGINT", stop);
  }
}
