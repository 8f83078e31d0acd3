/** Limits on the memory and time that the outside world can take from a member. */
import { UsageError, unexpected } from "../../core/errors.ts";

export interface Limits {
  readonly maxFrameBytes: number;
  /** Per peer: messages that are queued or not acknowledged yet. */
  readonly maxQueueBytes: number;
  readonly handshakeTimeoutMs: number;
  /** Connections that have not identified themselves yet. */
  readonly maxStrangers: number;
}

export const defaultLimits: Limits = {
  maxFrameBytes: 1024 * 1024,
  maxQueueBytes: 8 * 1024 * 1024,
  handshakeTimeoutMs: 3_000,
  maxStrangers: 64,
};

/** A lower limit would not fit the messages of ordinary protocols, and fail only when one is sent. */
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
