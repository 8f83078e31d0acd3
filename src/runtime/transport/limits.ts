/** Bounds on what the outside can make a member hold or wait for. */
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
