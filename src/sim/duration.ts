/** How long a handler lets a timer run. */

import type { Duration } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import { requireDuration } from "../driver/effect-checks.ts";

/** Draws from a range. @throws InvariantViolation for what is no duration. */
export function drawn(duration: Duration, source: Random, timer: string): number {
  requireDuration(timer, duration);
  return typeof duration === "number" ? duration : source.between(duration[0], duration[1]);
}
