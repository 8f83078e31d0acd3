/** Closes resources when their test ends, the latest first, whether it passed or not. */
import { afterEach } from "vitest";

interface Closing {
  close(): unknown;
}

/** Call it once in a test file. */
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
