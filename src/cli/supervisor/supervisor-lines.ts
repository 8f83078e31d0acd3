/** What `coterie` and the supervisor of its command say to each other: one JSON object a line, over a pipe of their own. */

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
  /** What is added to the environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Past this moment of `monotonicMs` nothing of the command may run. Null where a grant has no such moment. */
  readonly until: number | null;
  /** So long after SIGTERM comes SIGKILL, unless `until` comes first. */
  readonly graceMs: number;
}

export type FromSupervisor =
  | { readonly type: "ready"; readonly at: number }
  | { readonly type: "started"; readonly pid: number }
  /** The grant was not confirmed in time: the command has been told to end. */
  | { readonly type: "overdue" }
  | Ended;

export type Ended =
  | { readonly type: "ended"; readonly code: number | null; readonly signal: NodeJS.Signals | null }
  /** The system would not start it; `code` says why, such as ENOENT. */
  | { readonly type: "not-started"; readonly code: string };

/** Where the supervisor finds its end of the pipe. */
export const PIPE = 3;

/** Timers of Node hold no longer than 2^31 ms. */
export const LONGEST_TIMER_MS = 2 ** 30;

/** A command line and its environment are limited by the system to less. */
export const MAX_LINE_LENGTH = 16 * 1024 * 1024;

/**
 * Milliseconds that only go forwards. Node's `hrtime` is the system's monotonic clock, which counts from when the machine
 * started: all processes read the same one, and the supervisor's first word is checked for that.
 */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
