/** What `coterie campaign` prints. */
import { type CampaignSummary, type ExperimentSummary, RUNS } from "../experiment/campaign/summary.ts";
import { counted, figure } from "../experiment/paragraph.ts";
import { type Paint, table } from "./terminal.ts";

/** @param folder where the reports are. */
export function campaignText(
  { campaign, runs, digest, experiments }: CampaignSummary,
  { seconds, folder, file }: { readonly seconds: number; readonly folder: string; readonly file: string },
  paint: Paint,
): string {
  const rows = experiments.map(({ name, kind, runs: own, messages, moves, failures }) => [
    `  ${failures.length === 0 ? "✓" : "✗"} ${name}`,
    kind,
    counted(own, RUNS),
    spread(messages, "messages") + spread(moves, "moves"),
  ]);
  return [
    `${paint("bold", campaign)}: ${counted(runs, RUNS)} in ${figure(seconds)} s, digest ${digest}`,
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
