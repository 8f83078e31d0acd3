/** The checker: every behaviour of a protocol within bounds. */
export { type Counterexample, counterexample } from "./counterexample.ts";
export { type Coverage, type CoverageReport, coverage } from "./coverage.ts";
export {
  type Exploration,
  type ExploreOptions,
  explore,
  type Progress,
  type Taken,
  type Verdict,
  type Witness,
} from "./explore.ts";
export { type FewestFaults, fewestFaults } from "./fewest-faults.ts";
export * from "./linearizability/index.ts";
export type { CommandSource } from "./local-steps.ts";
export type { ModelOptions, Move, TimerMode } from "./model.ts";
export type { NetworkKind } from "./network.ts";
export type { Reach } from "./reach.ts";
export type { Rename } from "./representative.ts";
export { exploreDepthFirst } from "./search/dfs.ts";
export type { Strategy } from "./search/schedulers.ts";
export { type WalkOptions, type WalkProgress, type WalkResult, walk } from "./search/walks.ts";
export { type ShrinkOptions, type ShrinkProgress, type Shrunk, shrink } from "./shrink/shrink.ts";
export { modelOf, movesOf, shrinkTrace, type TraceModel } from "./shrink/trace.ts";
export { type SystemSpec, systemFor } from "./suite.ts";
export {
  type GroupEntry,
  type GroupOrders,
  type GroupRecord,
  type GroupViolation,
  virtualSynchrony,
} from "./virtual-synchrony.ts";
