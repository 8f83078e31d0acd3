/** The messages between `coterie` and the supervisor of its command: one JSON object per line, over a pipe. */

export type ToSupervisor =
  | ({ readonly type: "run" } & Order)
  /** The grant has been confirmed: it is certain until then. */
  | { readonly type: "certain"; readonly until: number }
  /** A signal for the command. */
  | { readonly type: "signal"; readonly name: NodeJS.Signals }
  /** The grant is lost: SIGTERM, and SIGKILL after the grace. */
  | { readonly type: "stop" }
  | { readonly type: "kill" };

export interface Order {
  readonly command: readonly string[];
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** No process of the command may run after this time, in `monotonicMs`. Null if the grant does not expire. */
  readonly until: number | null;
  /** The time from SIGTERM to SIGKILL, unless `until` is earlier. */
  readonly graceMs: number;
}

export type FromSupervisor =
  | { readonly type: "ready"; readonly at: number }
  | { readonly type: "started"; readonly pid: number }
  /** The grant was not confirmed in time: the command has been asked to end. */
  | { readonly type: "overdue" }
  | Ended;

export type Ended =
  | { readonly type: "ended"; readonly code: number | null; readonly signal: NodeJS.Signals | null }
  /** The system did not start it; `code` is the reason, such as ENOENT. */
  | { readonly type: "not-started"; readonly code: string };

/** The file descriptor of the pipe in the supervisor. */
export const PIPE = 3;

/** Node.js timers cannot wait longer than 2^31 − 1 ms. */
export const LONGEST_TIMER_MS = 2 ** 30;

/** Longer than any command line with its environment that the system accepts. */
export const MAX_LINE_LENGTH = 16 * 1024 * 1024;

/**
 * Milliseconds of the system's monotonic clock, which counts from the start of the machine. All processes read the same clock;
 * the supervisor's first message is checked for that.
 */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
