/** How long a handler lets a timer run. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { Duration } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";

/** Draws from a range. @throws UsageError for what is no duration: such a timer would turn time back, or end it. */
export function drawn(duration: Duration, source: Random, timer: string): number {
  if (typeof duration === "number") {
    if (duration >= 0 && duration < Number.POSITIVE_INFINITY) return duration;
  } else {
    const [min, max] = duration;
    if (min >= 0 && min <= max && max < Number.POSITIVE_INFINITY) return source.between(min, max);
  }
  const got = typeof duration === "number" ? duration : duration.join(" to ");
  const expected = "finite milliseconds of 0 or more, or a range of them, least first";
  throw new UsageError("bad-timer", unexpected(`the duration of ${timer}`, expected, got));
}
