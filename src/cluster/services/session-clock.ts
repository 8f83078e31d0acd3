/**
 * Times that a member exchanges with programs on its machine: readings of the system's monotonic clock, in nanoseconds.
 * They are strings, since they may exceed 2^53.
 */

/** Converts from the scale of `performance.now()` to one shared by all processes on the machine. */
export const toMonotonicNs = (moment: number): string =>
  String(process.hrtime.bigint() + BigInt(Math.floor((moment - performance.now()) * 1e6)));

/** Converts a shared time to this process's scale. */
export const fromMonotonicNs = (ns: string): number =>
  performance.now() + Number(BigInt(ns) - process.hrtime.bigint()) / 1e6;
