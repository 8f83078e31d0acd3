/** The simulator: a protocol on many nodes in virtual time, in one process and without a clock. */
export type { TraceEntry } from "../trace/entry.ts";
export * from "./simulation.ts";
