/**
 * The simulator: runs a protocol on many nodes in virtual time, deterministically.
 *
 * @module coterie/sim
 */

export type { ByzantineBehaviour } from "../protocols/byzantine.ts";
export type { TraceEntry } from "../trace/entry.ts";
export type { LinkModel } from "../trace/link-model.ts";
export { logLine } from "../trace/log.ts";
export type { Snapshot } from "../trace/snapshot.ts";
export type { Delay } from "./delay.ts";
export type { CrashFate, JournalFate } from "./journal.ts";
export type { PartitionShape } from "./links.ts";
export type { SimulationOptions } from "./options.ts";
export { type Simulation, simulation, type Violation } from "./simulation.ts";
