/** The checker: every behaviour of a protocol within bounds. */
export { type Exploration, type ExploreOptions, explore, type Progress, type Taken } from "./explore.ts";
export * from "./linearizability/index.ts";
export type { ModelOptions, Move } from "./model.ts";
export type { NetworkKind } from "./network.ts";
