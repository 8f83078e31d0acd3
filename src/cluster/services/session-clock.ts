/**
 * Times that a member and the programs of its machine exchange: readings of the system's monotonic clock, in nanoseconds.
 * They are strings, since they may exceed 2^53.
 */

/** Converts from the scale of `performance.now()` to one that all processes of the machine share. */
export const toMonotonicNs = (moment: number): string =>
  String(process.hrtime.bigint() + BigInt(Math.floor((moment - performance.now()) * 1e6)));

/** Converts back, in this process. */
export const fromMonotonicNs = (ns: string): number =>
  performance.now() + Number(BigInt(ns) - process.hrtime.bigint()) / 1e6;
