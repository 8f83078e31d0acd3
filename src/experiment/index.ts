/** Experiments as values: this system, so many nodes, this workload, this network, these faults, these properties. */

export type { Experiment } from "./experiment.ts";
export { type ExperimentOption, experimentOptions } from "./experiment.ts";
export { type CheckAnswer, type CheckProgress, explore } from "./explore.ts";
export * from "./scenario/index.ts";
export { scenarioOf, simulate } from "./simulate.ts";
export { flagOf } from "./written-values.ts";
