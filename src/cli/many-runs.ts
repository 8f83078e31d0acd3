/** What a process that makes many short runs is better off with. */
import { setFlagsFromString } from "node:v8";

/**
 * Where what is made has outlived some collections, V8 makes the next ones among the old at once. Runs end and leave all that they made,
 * but one of theirs among the old keeps what it reaches, the next run's too, until the whole heap is collected: V8 copied nine tenths
 * of each short run to and fro, which took more time than the runs.
 */
export const makeAllYoung = (): void => setFlagsFromString("--no-allocation-site-pretenuring");
