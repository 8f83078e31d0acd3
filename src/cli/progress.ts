/**
 * How far long work has come: one line on stderr, where somebody sees it, and gone when the work is done. In a log it is
 * a line now and then, for work that asks for that.
 */
import type { Output } from "./invocation.ts";

const FIRST_AFTER_MS = 500;
const EVERY_MS = 200;

export interface ProgressLine {
  /** Shows a line, unless one was shown just now. */
  show(text: () => string): void;
  clear(): void;
}

/** @param logEveryMs how often a line is written where no terminal rewrites it; never by default. */
export function progressLine(stream: Output, logEveryMs = Number.POSITIVE_INFINITY): ProgressLine {
  let due = Date.now() + (stream.isTTY === true ? FIRST_AFTER_MS : logEveryMs);
  let isShown = false;
  return {
    show(text) {
      const now = Date.now();
      if (now < due) return;
      due = now + (stream.isTTY === true ? EVERY_MS : logEveryMs);
      if (stream.isTTY !== true) return void stream.write(`${text()}\n`);
      isShown = true;
      stream.write(`\r\u001b[K${text()}`);
    },
    clear() {
      if (isShown) stream.write("\r\u001b[K");
      isShown = false;
    },
  };
}
