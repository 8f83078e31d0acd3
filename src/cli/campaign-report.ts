/** What `coterie campaign` prints. */
import { type CampaignSummary, type ExperimentSummary, RUNS } from "../experiment/campaign/summary.ts";
import { counted, figure } from "../experiment/paragraph.ts";
import { type Report, type Section, styled } from "./report.ts";

interface Printed {
  readonly seconds: number;
  /** Where the reports are. */
  readonly folder: string;
  readonly file: string;
  /** What was done before, and is not done again. */
  readonly found: { readonly jobs: number; readonly of: number; readonly where: string };
}

export function campaignReport(summary: CampaignSummary, { seconds, folder, file, found }: Printed): Report {
  const { campaign, runs, digest, experiments } = summary;
  const before =
    found.jobs === 0
      ? ""
      : `; ${figure(found.jobs)} of ${figure(found.of)} jobs were in ${found.where} before, and were not done again`;
  const columns = experiments.map(({ name, kind, runs: own, messages, moves, failures }) => [
    `  ${failures.length === 0 ? "✓" : "✗"} ${name}`,
    kind,
    counted(own, RUNS),
    spread(messages, "messages") + spread(moves, "moves"),
  ]);
  return {
    json: { ...summary, seconds },
    sections: [
      [`${styled("bold", campaign)}: ${counted(runs, RUNS)} in ${figure(seconds)} s, digest ${digest}${before}`],
      [{ columns }],
      ...experiments.flatMap((each) => failuresOf(each, file)),
      [`The report is in ${folder}/report.html and report.json`],
    ],
  };
}

const spread = (values: ExperimentSummary["moves"], what: string): string =>
  values === null ? "" : `${figure(values.min)} to ${figure(values.max)} ${what}`;

function failuresOf({ name, failures }: ExperimentSummary, file: string): Section[] {
  return failures.map(({ what, count, smallest, kept }, at) => {
    const shrunk = kept === null || kept.shrunkTo === null ? "" : `, shrunk to ${figure(kept.shrunkTo)} moves`;
    const trace = kept === null ? "" : ` (${name}-${at + 1}.jsonl${shrunk})`;
    return [
      `  ${styled("red", what)}: ${counted(count, RUNS)} of ${name}, the smallest with seed ${smallest.seed}${trace}`,
      `    coterie campaign ${file} --only ${name}:${smallest.seed}`,
    ];
  });
}
