/** What `coterie campaign` prints. */
import { type CampaignSummary, type ExperimentSummary, RUNS } from "../experiment/campaign/summary.ts";
import { counted, figure } from "../experiment/paragraph.ts";
import { type Paint, table } from "./terminal.ts";

interface Printed {
  readonly seconds: number;
  /** Where the reports are. */
  readonly folder: string;
  readonly file: string;
  /** What was done before, and is not done again. */
  readonly found: { readonly jobs: number; readonly of: number; readonly where: string };
}

export function campaignText(
  { campaign, runs, digest, experiments }: CampaignSummary,
  { seconds, folder, file, found }: Printed,
  paint: Paint,
): string {
  const before =
    found.jobs === 0
      ? ""
      : `; ${figure(found.jobs)} of ${figure(found.of)} jobs were in ${found.where} before, and were not done again`;
  const rows = experiments.map(({ name, kind, runs: own, messages, moves, failures }) => [
    `  ${failures.length === 0 ? "✓" : "✗"} ${name}`,
    kind,
    counted(own, RUNS),
    spread(messages, "messages") + spread(moves, "moves"),
  ]);
  return [
    `${paint("bold", campaign)}: ${counted(runs, RUNS)} in ${figure(seconds)} s, digest ${digest}${before}`,
    "",
    ...table(rows, (cell) => cell),
    ...experiments.flatMap((each) => failureLines(each, file, paint)),
    "",
    `The report is in ${folder}/report.html and report.json`,
    "",
  ].join("\n");
}

const spread = (values: ExperimentSummary["moves"], what: string): string =>
  values === null ? "" : `${figure(values.min)} to ${figure(values.max)} ${what}`;

function failureLines({ name, failures }: ExperimentSummary, file: string, paint: Paint): string[] {
  return failures.flatMap(({ what, count, smallest, kept }, at) => {
    const shrunk = kept === null || kept.shrunkTo === null ? "" : `, shrunk to ${figure(kept.shrunkTo)} moves`;
    const trace = kept === null ? "" : ` (${name}-${at + 1}.jsonl${shrunk})`;
    return [
      "",
      `  ${paint("red", what)}: ${counted(count, RUNS)} of ${name}, the smallest with seed ${smallest.seed}${trace}`,
      `    coterie campaign ${file} --only ${name}:${smallest.seed}`,
    ];
  });
}
