/**
 * Checks on the effects of a handler. Every driver reports an author's mistake with the same code and the same message. It is
 * an `InvariantViolation`, since the algorithm is wrong in every driver.
 */
import { InvariantViolation, unexpected } from "../core/errors.ts";
import type { Duration, NodeId } from "../core/protocol.ts";

/** @throws InvariantViolation if the value is not a valid duration: such a timer would fire in the past or never */
export function requireDuration(timer: string, duration: Duration): void {
  const [min, max] = typeof duration === "number" ? [duration, duration] : duration;
  if (min >= 0 && min <= max && max < Number.POSITIVE_INFINITY) return;
  const expected = "finite milliseconds of 0 or more, or a range of them, least first";
  const actual = typeof duration === "number" ? duration : duration.join(" to ");
  throw new InvariantViolation("bad-timer", unexpected(`the duration of ${timer}`, expected, actual));
}

/** @throws InvariantViolation if the handler offers an empty list of options */
export function requireChoice(label: string, options: readonly unknown[]): void {
  if (options.length > 0) return;
  throw new InvariantViolation("no-choice", unexpected(`the choice “${label}”`, "among at least one option", options));
}

/** The error for a message to a node that does not exist. */
export function unknownReceiver(to: NodeId, nodes: readonly NodeId[]): InvariantViolation {
  const some = nodes.length > 20 ? `one of ${nodes.length} nodes` : `one of ${nodes.join(", ")}`;
  return new InvariantViolation("unknown-receiver", unexpected("the receiver of a message", some, to));
}
