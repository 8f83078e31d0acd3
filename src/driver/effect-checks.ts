/**
 * What the effects of a handler have to be. An author's mistake is found in every driver, with the same code and the same
 * sentence: an `InvariantViolation`, for the algorithm is wrong in every driver.
 */
import { InvariantViolation, unexpected } from "../core/errors.ts";
import type { Duration, NodeId } from "../core/protocol.ts";

/** @throws InvariantViolation for what is no duration: such a timer would turn time back, or end it. */
export function requireDuration(timer: string, duration: Duration): void {
  const [min, max] = typeof duration === "number" ? [duration, duration] : duration;
  if (min >= 0 && min <= max && max < Number.POSITIVE_INFINITY) return;
  const expected = "finite milliseconds of 0 or more, or a range of them, least first";
  const actual = typeof duration === "number" ? duration : duration.join(" to ");
  throw new InvariantViolation("bad-timer", unexpected(`the duration of ${timer}`, expected, actual));
}

/** @throws InvariantViolation where there is nothing to choose from. */
export function requireChoice(label: string, options: readonly unknown[]): void {
  if (options.length > 0) return;
  throw new InvariantViolation("no-choice", unexpected(`the choice “${label}”`, "among at least one option", options));
}

/** A message to nobody there is. */
export function unknownReceiver(to: NodeId, nodes: readonly NodeId[]): InvariantViolation {
  const some = nodes.length > 20 ? `one of ${nodes.length} nodes` : `one of ${nodes.join(", ")}`;
  return new InvariantViolation("unknown-receiver", unexpected("the receiver of a message", some, to));
}
