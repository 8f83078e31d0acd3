/**
 * A message from `coterie` to the supervisor of its command. In both directions, messages are JSON objects sent over a
 * pipe, one per line.
 */

export type ToSupervisor =
  | ({ readonly type: "run" } & Order)
  /** The grant has been confirmed, and is certain until this time. */
  | { readonly type: "certain"; readonly until: number }
  /** A signal to be sent to the command. */
  | { readonly type: "signal"; readonly name: NodeJS.Signals }
  /** The grant is lost. The command gets SIGTERM, and SIGKILL after the grace period. */
  | { readonly type: "stop" }
  | { readonly type: "kill" };

/** The command to run. */
export interface Order {
  readonly command: readonly string[];
  /** Variables to add to the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** After this time, in `monotonicMs`, no process of the command may be running. Null if the grant does not expire. */
  readonly until: number | null;
  /** The time between SIGTERM and SIGKILL, unless `until` comes first. */
  readonly graceMs: number;
}

/** A message from the supervisor to `coterie`. */
export type FromSupervisor =
  | { readonly type: "ready"; readonly at: number }
  | { readonly type: "started"; readonly pid: number }
  /** The grant was not confirmed in time, and the command has been requested to end. */
  | { readonly type: "overdue" }
  | Ended;

/** How the command ended. */
export type Ended =
  | { readonly type: "ended"; readonly code: number | null; readonly signal: NodeJS.Signals | null }
  /** The system did not start the command. `code` is the reason, such as ENOENT. */
  | { readonly type: "not-started"; readonly code: string };

/** The pipe's file descriptor in the supervisor. */
export const PIPE = 3;

/** Node.js timers cannot wait longer than 2^31 − 1 ms. */
export const LONGEST_TIMER_MS = 2 ** 30;

/** The maximum length of a line. It is longer than any command line and environment that the system accepts. */
export const MAX_LINE_LENGTH = 16 * 1024 * 1024;

/**
 * Returns the time of the system's monotonic clock in milliseconds, counted from the start of the machine. All
 * processes read the same clock. The supervisor's first message is used to verify this.
 */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
