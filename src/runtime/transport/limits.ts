/** Limits on the memory and time that outside programs can use up in a member. */
import { UsageError, unexpected } from "../../core/errors.ts";

/** Limits for each member. All have defaults. */
export interface Limits {
  readonly maxFrameBytes: number;
  /** The maximum total size of the messages to one peer that are queued or not yet acknowledged. */
  readonly maxQueueBytes: number;
  readonly handshakeTimeoutMs: number;
  /** The maximum number of connections that have not yet identified themselves. */
  readonly maxStrangers: number;
}

export const defaultLimits: Limits = {
  maxFrameBytes: 1024 * 1024,
  maxQueueBytes: 8 * 1024 * 1024,
  handshakeTimeoutMs: 3_000,
  maxStrangers: 64,
};

/**
 * The lowest frame limit. With a lower one, the messages of ordinary protocols would not fit, and this would only be
 * noticed when one is sent.
 */
const MIN_FRAME_BYTES = 4 * 1024;

/** @throws UsageError if frames would be too small for messages */
export function limitsWith(wanted: Partial<Limits>): Limits {
  const limits = { ...defaultLimits, ...wanted };
  if (limits.maxFrameBytes < MIN_FRAME_BYTES)
    throw new UsageError(
      "bad-limits",
      unexpected("limits.maxFrameBytes", `at least ${MIN_FRAME_BYTES}`, limits.maxFrameBytes),
    );
  return limits;
}
