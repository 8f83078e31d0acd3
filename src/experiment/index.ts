/** Experiments as values: this system, so many nodes, this workload, this network, these faults, these properties. */
export type { Experiment } from "./experiment.ts";
export { type CheckAnswer, type CheckProgress, explore } from "./explore.ts";
export { type ExperimentOption, experimentOptions } from "./options.ts";
export * from "./scenario/index.ts";
export { simulate } from "./simulate.ts";
export { scenarioOf } from "./simulation.ts";
export { flagOf } from "./written-values.ts";
