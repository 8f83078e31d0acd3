/**
 * Checks a handler's effects. Every driver reports a mistake in a handler with the same code and the same message. It
 * is an `InvariantViolation`, because the algorithm is wrong with any driver.
 */
import { InvariantViolation, unexpected } from "../core/errors.ts";
import type { Duration, NodeId } from "../core/protocol.ts";

/**
 * Checks the duration of a timer.
 * @throws InvariantViolation if the duration is invalid, because such a timer would fire in the past or never
 */
export function requireDuration(timer: string, duration: Duration): void {
  const [min, max] = typeof duration === "number" ? [duration, duration] : duration;
  if (min >= 0 && min <= max && max < Number.POSITIVE_INFINITY) return;
  const expected = "a finite number of milliseconds, at least 0, or a range of two such numbers, smallest first";
  const actual = typeof duration === "number" ? duration : duration.join(" to ");
  throw new InvariantViolation("bad-timer", unexpected(`the duration of ${timer}`, expected, actual));
}

/**
 * Checks the options of a choice.
 * @throws InvariantViolation if the handler offers an empty list of options
 */
export function requireChoice(label: string, options: readonly unknown[]): void {
  if (options.length > 0) return;
  throw new InvariantViolation("no-choice", unexpected(`the options of “${label}”`, "a non-empty list", options));
}

/** Returns the error for a message to a node that does not exist. */
export function unknownReceiver(to: NodeId, nodes: readonly NodeId[]): InvariantViolation {
  const some = nodes.length > 20 ? `one of ${nodes.length} nodes` : `one of ${nodes.join(", ")}`;
  return new InvariantViolation("unknown-receiver", unexpected("the receiver of a message", some, to));
}
