/** Members of `join()` in virtual time, in one process: for tests of what rests on them. */
export type { Delay } from "../sim/delay.ts";
export type { PartitionShape } from "../sim/partitions.ts";
export type { Fault, FaultKind, FaultOptions } from "./faults.ts";
export { seeds } from "./seeds.ts";
export type { DiskModel } from "./simulated-disk.ts";
export type { LinkModel } from "./simulated-network.ts";
export { type ProcessTools, type Program, type RunOptions, simulate, type World, type WorldOptions } from "./world.ts";
export type { WorldTimer, WorldTimers } from "./world-timers.ts";
