/** Moments that a member and the programs of its machine both read from the system's monotonic clock, in nanoseconds: as text, since they may exceed 2^53. */

/** A moment on the scale of `performance.now()`, as all processes of the machine know it. */
export const toMonotonicNs = (moment: number): string =>
  String(process.hrtime.bigint() + BigInt(Math.floor((moment - performance.now()) * 1e6)));

/** And back, in this process. */
export const fromMonotonicNs = (ns: string): number =>
  performance.now() + Number(BigInt(ns) - process.hrtime.bigint()) / 1e6;
