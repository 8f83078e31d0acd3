/** What may be set of two-phase commit. */
import { boolean, real, struct } from "../../../core/shape.ts";
import { requirePositive, settle } from "../../options.ts";

export interface TwoPhaseCommitOptions {
  /** A coordinator that lacks votes after so long aborts. */
  votesMs: number;
  /** It repeats a commit so often until everybody has acknowledged it. */
  acknowledgementsMs: number;
  /** A participant in doubt asks so often what was decided. */
  decisionMs: number;
  /** Whether it asks everybody, and not its coordinator alone (cooperative termination). */
  isCooperative: boolean;
}

const defaults: TwoPhaseCommitOptions = {
  votesMs: 500,
  acknowledgementsMs: 500,
  decisionMs: 1_000,
  isCooperative: false,
};

const optionShape = struct<TwoPhaseCommitOptions>({
  votesMs: real,
  acknowledgementsMs: real,
  decisionMs: real,
  isCooperative: boolean,
});

/** @throws UsageError for options that there are not, or durations that are none. */
export function settledOptions(given?: Partial<TwoPhaseCommitOptions>): TwoPhaseCommitOptions {
  const options = settle(defaults, optionShape, given, "two-phase-commit");
  const { isCooperative: _, ...durations } = options;
  for (const [name, value] of Object.entries(durations)) requirePositive(`two-phase-commit.${name}`, value);
  return options;
}
