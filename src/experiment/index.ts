/**
 * Experiments as values: a protocol, its workload, the network, the faults and the properties to check.
 *
 * @module coterie/experiment
 */

export type { Experiment } from "./experiment.ts";
export { type ExperimentOption, experimentOptions } from "./experiment.ts";
export { type CheckAnswer, type CheckProgress, explore } from "./explore.ts";
export * from "./scenario/index.ts";
export { scenarioOf, simulate } from "./simulate.ts";
export { flagOf } from "./written-values.ts";
