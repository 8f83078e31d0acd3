/**
 * Run members created by `join()` in virtual time, in a single process, to test code that uses them.
 *
 * @module coterie/testing
 */

export type { Client } from "../client/client.ts";
export type { Delay } from "../sim/delay.ts";
export type { PartitionShape } from "../sim/links.ts";
export type { Fault, FaultKind, FaultOptions } from "./faults.ts";
export { seeds } from "./seeds.ts";
export type { ClientOptions } from "./simulated-clients.ts";
export type { DiskModel } from "./simulated-disk.ts";
export type { LinkModel } from "./simulated-network.ts";
export { simulate, type World } from "./world.ts";
export type { ProcessTools, Program, RunOptions, WorldOptions } from "./world-options.ts";
export type { WorldTimer, WorldTimers } from "./world-timers.ts";
