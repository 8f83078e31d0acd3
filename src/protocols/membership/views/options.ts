/** What views can be told, and what makes sense. */
import { UsageError, unexpected } from "../../../core/errors.ts";
import { boolean, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export interface ViewsOptions {
  /** So long the lowest node waits for other reasons to change the view, so that several make one change. */
  gatherMs: number;
  /** The same before the first view, when all nodes start: until all have been heard of that are not suspected. */
  firstGatherMs: number;
  /**
   * A step of a round should be done by then. A node that has not answered is asked again after half of it, and is left out
   * of the next round if that was in vain.
   */
  roundMs: number;
  /** The wait after a failed round, doubled with each up to the maximum. */
  backOffMs: number;
  maxBackOffMs: number;
  /** The lowest member says so often what the view is. 0: never, if no message is lost while the links are whole. */
  remindMs: number;
  /** Whether nodes ask to be in the group when they start. */
  joins: boolean;
}

const defaults: ViewsOptions = {
  gatherMs: 20,
  firstGatherMs: 200,
  roundMs: 1_000,
  backOffMs: 50,
  maxBackOffMs: 2_000,
  remindMs: 1_000,
  joins: true,
};

const optionShape = struct<ViewsOptions>({
  gatherMs: real,
  firstGatherMs: real,
  roundMs: real,
  backOffMs: real,
  maxBackOffMs: real,
  remindMs: real,
  joins: boolean,
});

/** @throws UsageError */
export function settledViews(given: Partial<ViewsOptions> | undefined): ViewsOptions {
  const options = settle(defaults, optionShape, given, "views");
  const { gatherMs, firstGatherMs, roundMs, backOffMs, maxBackOffMs, remindMs } = options;
  for (const [name, value] of Object.entries({ gatherMs, firstGatherMs, roundMs, backOffMs, maxBackOffMs }))
    requirePositive(`views.${name}`, value);
  const refuse = (name: string, wanted: string, got: number): never => {
    throw new UsageError("bad-option", unexpected(`views.${name}`, wanted, got));
  };
  if (remindMs < 0) refuse("remindMs", "a number >= 0", remindMs);
  if (maxBackOffMs < backOffMs) refuse("maxBackOffMs", `a number >= backOffMs, which is ${backOffMs}`, maxBackOffMs);
  return options;
}
