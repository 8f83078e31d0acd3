/** Experiments as values: this system, so many nodes, this workload, this network, these faults, these properties. */
export * from "./scenario/index.ts";
export type { PropertyVerdict } from "./verdicts.ts";
