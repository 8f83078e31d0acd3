/**
 * The checker: explores every behavior of a protocol within bounds.
 *
 * @module coterie/check
 */

export * from "../history/index.ts";
export { type Counterexample, counterexample } from "./counterexample.ts";
export {
  type Exploration,
  type ExploreOptions,
  explore,
  type FewestFaults,
  fewestFaults,
  type Progress,
  type Taken,
  type Verdict,
  type Witness,
} from "./explore.ts";
export type { CommandSource } from "./local-steps.ts";
export type { ModelOptions, Move, TimerMode } from "./model.ts";
export type { NetworkKind } from "./network.ts";
export type { Reach } from "./reach.ts";
export { exploreDepthFirst } from "./search/dfs.ts";
export type { Strategy } from "./search/walks.ts";
export { type WalkOptions, type WalkProgress, type WalkResult, walk } from "./search/walks.ts";
export { type ShrinkOptions, type ShrinkProgress, type Shrunk, shrink } from "./shrink/shrink.ts";
export { modelOf, movesOf, shrinkTrace, type TraceModel } from "./shrink/trace.ts";
export { type SystemSpec, systemFor } from "./suite.ts";
export type { TimeBounds } from "./timed-network.ts";
