/** What the results of all jobs come to. They are taken in the order of the campaign, so it is the same wherever they were made. */
import { hash } from "../../core/plain.ts";
import { type ChunkResult, emptyRange, type Failure, failureTogether, type Range } from "./chunk.ts";
import type { Campaign, CampaignExperiment } from "./file.ts";
import type { SmallestRun } from "./smallest.ts";

interface Spread {
  readonly min: number;
  readonly mean: number;
  readonly max: number;
}

/** For counts of them. */
export const RUNS = { one: "run", more: "runs" };

export interface CampaignSummary {
  readonly campaign: string;
  readonly runs: number;
  /** Equal where every run of every experiment came to the same. */
  readonly digest: string;
  readonly experiments: readonly ExperimentSummary[];
}

export interface ExperimentSummary {
  readonly name: string;
  readonly kind: CampaignExperiment["kind"];
  readonly seeds: CampaignExperiment["seeds"];
  readonly runs: number;
  readonly digest: string;
  /** Null but of simulated runs, as is `timeMs`, which is virtual time. */
  readonly messages: Spread | null;
  readonly timeMs: Spread | null;
  /** Null but of walks. */
  readonly moves: Spread | null;
  readonly failures: readonly (Failure & { readonly kept: SmallestRun | null })[];
}

/** @param results in any order, each chunk once. */
export function experimentSummaries(campaign: Campaign, results: readonly ChunkResult[]): readonly ExperimentSummary[] {
  const ordered = results.toSorted((a, b) => a.experiment - b.experiment || a.chunk - b.chunk);
  return campaign.experiments.map(({ name, kind, seeds }, at) => {
    const own = ordered.filter(({ experiment }) => experiment === at);
    const runs = own.reduce((sum, each) => sum + each.runs, 0);
    const size = spreadOf(
      own.map((each) => each.size),
      runs,
    );
    const timeMs = spreadOf(
      own.flatMap((each) => each.timeMs ?? []),
      runs,
    );
    return {
      name,
      kind,
      seeds,
      runs,
      digest: digestOf(own.map(({ digest }) => digest)),
      messages: kind === "simulate" ? size : null,
      timeMs: kind === "simulate" ? timeMs : null,
      moves: kind === "walk" ? size : null,
      failures: failuresTogether(own).map((failure) => ({ ...failure, kept: null })),
    };
  });
}

export function campaignSummary(campaign: Campaign, experiments: readonly ExperimentSummary[]): CampaignSummary {
  return {
    campaign: campaign.name,
    runs: experiments.reduce((sum, { runs }) => sum + runs, 0),
    digest: digestOf(experiments.map(({ digest }) => digest)),
    experiments,
  };
}

function failuresTogether(ordered: readonly ChunkResult[]): readonly Failure[] {
  const together = new Map<string, Failure>();
  for (const failure of ordered.flatMap(({ failures }) => failures)) {
    const before = together.get(failure.what);
    together.set(failure.what, before === undefined ? failure : failureTogether(before, failure));
  }
  return [...together.values()];
}

function spreadOf(ranges: readonly Range[], runs: number): Spread | null {
  if (ranges.length === 0 || runs === 0) return null;
  const { min, max, sum } = ranges.reduce(
    (a, b) => ({ min: Math.min(a.min, b.min), max: Math.max(a.max, b.max), sum: a.sum + b.sum }),
    emptyRange(),
  );
  return { min, mean: sum / runs, max };
}

const digestOf = (parts: readonly unknown[]): string => hash(parts).toString(16).padStart(14, "0");
