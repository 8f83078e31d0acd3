/** `coterie campaign`: runs experiments with many seeds on several threads, and writes a report. */
import { createHash, type Hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import type { Command } from "commander";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { canonical } from "../../core/plain.ts";
import {
  type CampaignSummary,
  campaignSummary,
  type ExperimentSummary,
  experimentSummaries,
  RUNS,
} from "../../experiment/campaign/chunk.ts";
import { type CampaignSource, chunksOf, only, parseCampaign, scenarioFilesOf } from "../../experiment/campaign/file.ts";
import type { SmallestRun } from "../../experiment/campaign/smallest.ts";
import { counted, figure } from "../../experiment/paragraph.ts";
import { wholeNumber } from "../../experiment/written-values.ts";
import { packageFile } from "../../runtime/package-files.ts";
import { contentOf } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { ExitWith, type Invocation, print, progressLine, type Report, type Section, styled } from "../output.ts";
import { CampaignFolder, type Hands, handsHere } from "./campaign-jobs.ts";
import { SIGNALS, Threads } from "./threads.ts";

const LOG_EVERY_MS = 5_000;
const MAX_DEFAULT_WORKERS = 8;
const MAX_WORKERS = 256;

interface CampaignOptions {
  readonly out?: string;
  readonly only?: string;
  readonly workers?: number;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description("Runs many experiments with many seeds, and reports the runs that fail.")
    .argument("<file>", "file that describes the campaign, as JSON")
    .option("--out <folder>", "folder for results and reports (default: campaign-NAME)")
    .option("--only <name[:seed]>", "run only this experiment, or only one of its seeds")
    .option("--workers <n>", "number of threads (default: number of cores, at most 8)", (text) =>
      wholeNumber(1, MAX_WORKERS)(text, "--workers"),
    )
    .option("--json", "print the summary as JSON")
    .action((file: string, options: CampaignOptions) => campaign(file, options, invocation));
}

const manual: Manual = {
  examples: [
    "coterie campaign nightly.json",
    "coterie campaign nightly.json --only lossy-paxos:4711",
    "coterie campaign nightly.json --workers 4 --json",
  ],
  exitCodes: "0 no run failed; 1 some runs failed, or the campaign was stopped; 2 invalid arguments or an invalid file",
  details: `A campaign file is JSON, for example:

\`\`\`json
{ "name": "nightly", "seeds": { "from": 1, "count": 100000 }, "experiments": [
  { "name": "lossy-paxos", "simulate": { "protocol": "paxos", "propose": "all", "delay": "1..40", "loss": 0.1 } },
  { "name": "maekawa-walks", "walk": { "protocol": "maekawa", "nodes": 4, "strategy": "pct" } },
  { "name": "story", "scenario": "story.yaml" },
  { "name": "soak", "soak": { "command": ["node", "soak.js", "{seed}"], "timeoutSeconds": 60 } } ] }
\`\`\`

Ctrl-C stops the campaign. To continue it, even after a crash, run the same command again; each seed counts once. The campaign writes
\`report.json\` and the smallest run for each failure to its folder. See [campaigns](../verify/campaigns.md).

With \`--json\`:

\`\`\`json
{ "campaign", "runs", "digest", "experiments": [{ "name", "kind", "seeds", "runs", "digest", "messages",
  "timeMs", "moves", "failures": [{ "what", "count", "seeds", "smallest", "kept" }] }], "seconds" }
\`\`\``,
};

async function campaign(file: string, options: CampaignOptions, invocation: Invocation): Promise<void> {
  const source = sourceOf(file, options.only);
  const campaign = parseCampaign(source);
  const began = performance.now();
  const folder = options.out ?? defaultFolder(campaign.name, options.only);
  const jobs = new CampaignFolder(campaign, folder, identityOf(source));
  const summary = await worked(jobs, source, options, invocation);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  writeReport(folder, summary, seconds);
  const found = { jobs: jobs.foundJobs, of: chunksOf(campaign).length };
  print(campaignReport(summary, { seconds, folder, file, found }), options, invocation.stdout);
  if (summary.experiments.some(({ failures }) => failures.length > 0)) throw new ExitWith(1);
}

const defaultFolder = (name: string, chosen: string | undefined): string =>
  chosen === undefined ? `campaign-${name}` : `campaign-${name}-${chosen.replace(":", "-")}`;

/**
 * Runs the remaining jobs.
 * @throws EnvironmentError `stopped` on Ctrl-C. The results of finished jobs are kept.
 */
async function worked(
  jobs: CampaignFolder,
  source: CampaignSource,
  { workers = Math.min(availableParallelism(), MAX_DEFAULT_WORKERS) }: CampaignOptions,
  { stderr, usesThreads }: Invocation,
): Promise<CampaignSummary> {
  const campaign = parseCampaign(source);
  const total = chunksOf(campaign).length;
  const line = progressLine(stderr, LOG_EVERY_MS);
  const hands = usesThreads ? new Threads("campaign", Math.min(workers, total), { source }) : handsHere(campaign);
  let isStopped = false;
  const stop = (): void => {
    if (isStopped) process.exit(1);
    isStopped = true;
    hands.stop();
    line.clear();
    stderr.write("coterie: stopping, and waiting for the running jobs; press Ctrl-C again to end them at once\n");
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  let done = 0;
  try {
    const show = (finished: number): void => {
      done = finished;
      line.show(() => `${figure(finished)} of ${figure(total)} jobs`);
    };
    const results = await jobs.work(hands, () => isStopped, show);
    if (results === null)
      throw new EnvironmentError("stopped", `stopped after ${done} of ${total} jobs: run the same command to continue`);
    return campaignSummary(campaign, await withSmallest(experimentSummaries(campaign, results), hands));
  } finally {
    line.clear();
    for (const signal of SIGNALS) process.off(signal, stop);
    jobs.close();
    await hands.close();
  }
}

function withSmallest(
  experiments: CampaignSummary["experiments"],
  hands: Hands,
): Promise<CampaignSummary["experiments"]> {
  return Promise.all(
    experiments.map(async (each, at) => {
      const kept = each.failures.map(async (failure) => {
        const task = { experiment: at, seed: failure.smallest.seed, what: failure.what };
        return { ...failure, kept: (await hands.ask({ smallest: task })) as SmallestRun | null };
      });
      return { ...each, failures: await Promise.all(kept) };
    }),
  );
}

function sourceOf(file: string, chosen: string | undefined): CampaignSource {
  const whole = contentOf(file, "the campaign", "bad-campaign");
  const text = chosen === undefined ? whole : only(whole, file, chosen);
  const scenarios = scenarioFilesOf(text, file).map((path) => [
    path,
    contentOf(resolve(dirname(file), path), `the scenario ${path}`, "bad-campaign"),
  ]);
  return { file, text, scenarios: Object.fromEntries(scenarios) as CampaignSource["scenarios"] };
}

/** Returns a hash of the campaign's text, its scenarios and the code. The file's name does not matter. */
function identityOf({ text, scenarios }: CampaignSource): string {
  const whole = canonical({ campaign: JSON.parse(text) as object, scenarios });
  return codeHash().update(whole).digest("hex").slice(0, 16);
}

/**
 * Returns a hash of all the code. In a checkout, a new build can change the results of runs without a new version
 * number.
 */
function codeHash(): Hash {
  const root = packageFile(import.meta.url.endsWith(".ts") ? "src" : "dist");
  const hash = createHash("sha256");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /[.][jt]s$/.test(file));
  for (const file of files.sort()) hash.update(`${file.split(sep).join("/")}\n`).update(readFileSync(join(root, file)));
  return hash;
}

function writeReport(folder: string, summary: CampaignSummary, seconds: number): void {
  const files: [name: string, content: string][] = [
    ["report.json", `${JSON.stringify({ ...summary, seconds }, null, 2)}\n`],
  ];
  for (const { name, failures } of summary.experiments)
    for (const [at, { kept }] of failures.entries())
      if (kept !== null) files.push([`${name}-${at + 1}.jsonl`, kept.trace]);
  try {
    mkdirSync(folder, { recursive: true });
    for (const [name, content] of files) {
      const written = join(folder, `.${name}.${process.pid}`);
      writeFileSync(written, content);
      renameSync(written, join(folder, name)); // Another process may be writing the same file at the same time.
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-folder", `${unexpected("--out", "a writable folder", folder)} (${code})`);
  }
}

interface Printed {
  readonly seconds: number;
  /** The folder with the reports. */
  readonly folder: string;
  readonly file: string;
  /** The jobs that had already been finished and are not repeated. */
  readonly found: { readonly jobs: number; readonly of: number };
}

/** Returns a campaign's report. */
export function campaignReport(summary: CampaignSummary, { seconds, folder, file, found }: Printed): Report {
  const { campaign, runs, digest, experiments } = summary;
  const before =
    found.jobs === 0 ? "" : `; ${figure(found.jobs)} of ${figure(found.of)} jobs were already done in ${folder}`;
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
      [`report: ${folder}/report.json`],
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
