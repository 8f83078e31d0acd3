/** Bounds on what the outside can make a member hold or wait for. */
import { UsageError, unexpected } from "../../core/errors.ts";

export interface Limits {
  readonly maxFrameBytes: number;
  /** Per peer: what waits to be sent and what is not acknowledged yet. */
  readonly maxQueueBytes: number;
  readonly handshakeTimeoutMs: number;
  /** Connections that have not said who they are yet. */
  readonly maxStrangers: number;
}

export const defaultLimits: Limits = {
  maxFrameBytes: 1024 * 1024,
  maxQueueBytes: 8 * 1024 * 1024,
  handshakeTimeoutMs: 3_000,
  maxStrangers: 64,
};

/** With less, the messages of an ordinary protocol would not fit, which shows only when one is sent. */
const MIN_FRAME_BYTES = 4 * 1024;

/** @throws UsageError for frames too small to carry messages. */
export function limitsWith(wanted: Partial<Limits>): Limits {
  const limits = { ...defaultLimits, ...wanted };
  if (limits.maxFrameBytes < MIN_FRAME_BYTES)
    throw new UsageError(
      "bad-limits",
      unexpected("limits.maxFrameBytes", `at least ${MIN_FRAME_BYTES}`, limits.maxFrameBytes),
    );
  return limits;
}
