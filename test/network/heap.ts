/** The size of the heap without what nobody needs any more. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export function heapUsedBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}
