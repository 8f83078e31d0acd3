/**
 * Closes resources when their test ends, whether it passed or failed. The most recently opened resource is closed
 * first.
 */
import { afterEach } from "vitest";

interface Closing {
  close(): unknown;
}

/** Call this once per test file. */
export function closedAfterEach(): <T extends Closing>(opened: T) => T {
  const open: Closing[] = [];
  afterEach(async () => {
    for (const opened of open.splice(0).reverse()) await opened.close();
  });
  return (opened) => {
    open.push(opened);
    return opened;
  };
}
