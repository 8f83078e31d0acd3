/** `coterie campaign`: many seeds of experiments, over the threads of this process or over machines, and a report. */
import { createHash, type Hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { EnvironmentError, InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import { canonical } from "../core/plain.ts";
import { type CampaignSource, chunksOf, only, parseCampaign, scenarioFilesOf } from "../experiment/campaign/file.ts";
import { campaignPage } from "../experiment/campaign/page.ts";
import { type CampaignSummary, campaignSummary, experimentSummaries } from "../experiment/campaign/summary.ts";
import { figure } from "../experiment/paragraph.ts";
import { wholeNumber } from "../experiment/written-values.ts";
import { docsPage } from "../runtime/docs-page.ts";
import { CampaignFolder } from "./campaign-folder.ts";
import type { CampaignQueue } from "./campaign-queue.ts";
import { campaignReport } from "./campaign-report.ts";
import { type Hands, Threads } from "./campaign-threads.ts";
import type { Invocation } from "./invocation.ts";
import { progressLine } from "./progress.ts";
import { contentOf } from "./read-file.ts";
import { print } from "./report.ts";

const LOG_EVERY_MS = 5_000;
const MAX_DEFAULT_WORKERS = 8;
const MAX_WORKERS = 256;

interface CampaignOptions {
  readonly out?: string;
  readonly only?: string;
  readonly redis?: string;
  readonly workers?: number;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Makes many runs of many experiments, each with its own seed, and reports which fail.")
    .argument("<file>", `the campaign, as JSON (${docsPage("campaigns.md")})`)
    .option("--out <folder>", "where results and reports go (default: campaign-NAME)")
    .option("--only <name[:seed]>", "this experiment only, or one run of it")
    .option("--redis <url>", "share the jobs with every process that is given the same, through BullMQ")
    .option("--workers <n>", "how many threads (default: the number of cores, at most 8)", (text) =>
      wholeNumber(1, MAX_WORKERS)(text, "--workers"),
    )
    .option("--json", "print the summary as JSON")
    .addHelpText("after", EXPLANATION)
    .action((file: string, options: CampaignOptions) => campaign(file, options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie campaign nightly.json
  $ coterie campaign nightly.json --only lossy-paxos:4711          one run again
  $ coterie campaign nightly.json --redis redis://10.0.0.1:6379    on as many machines as you like

A campaign is JSON such as
  { "name": "nightly", "seeds": { "from": 1, "count": 100000 }, "experiments": [
    { "name": "lossy-paxos", "simulate": { "protocol": "paxos", "propose": "all", "delay": "1..40", "loss": 0.1 } },
    { "name": "maekawa-walks", "walk": { "protocol": "maekawa", "nodes": 4, "strategy": "pct" } },
    { "name": "story", "scenario": "story.yaml" },
    { "name": "soak", "soak": { "command": ["node", "soak.js", "{seed}"], "timeoutSeconds": 60 } } ] }

Ctrl-C ends it; started again, it goes on where it was, as it does after a crash. Each seed counts once.
The folder gets report.json, report.html and, of each failure, the smallest run, shrunk where that can be.

With --json: { "campaign", "runs", "digest", "experiments": [{ "name", "kind", "seeds", "runs", "digest", "messages",
  "timeMs", "moves", "failures": [{ "what", "count", "seeds", "smallest", "kept" }] }], "seconds" }
Exit codes: 0 no run failed; 1 some did, or it was stopped; 2 wrong arguments or a wrong file.`;

async function campaign(file: string, options: CampaignOptions, invocation: Invocation): Promise<void> {
  const source = sourceOf(file, options.only);
  const campaign = parseCampaign(source);
  const began = performance.now();
  const identity = identityOf(source);
  const folder = options.out ?? defaultFolder(campaign.name, options.only);
  const queue =
    options.redis === undefined
      ? new CampaignFolder(campaign, folder, identity)
      : await (await import("./campaign-redis.ts")).CampaignOnRedis.open(campaign, options.redis, identity);
  const summary = await worked(queue, source, options, invocation);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  writeReport(folder, summary, seconds);
  const found = { jobs: queue.foundJobs, of: chunksOf(campaign).length, where: options.redis ?? folder };
  print(campaignReport(summary, { seconds, folder, file, found }), options, invocation.stdout);
  const failing = summary.experiments.filter(({ failures }) => failures.length > 0).map(({ name }) => name);
  if (failing.length > 0) throw new InvariantViolation("not-as-expected", `runs failed: ${failing.join(", ")}`);
}

const defaultFolder = (name: string, chosen: string | undefined): string =>
  chosen === undefined ? `campaign-${name}` : `campaign-${name}-${chosen.replace(":", "-")}`;

/** @throws EnvironmentError `stopped` on Ctrl-C: what is done is kept. */
async function worked(
  queue: CampaignQueue,
  source: CampaignSource,
  { workers = Math.min(availableParallelism(), MAX_DEFAULT_WORKERS) }: CampaignOptions,
  { stderr, usesThreads }: Invocation,
): Promise<CampaignSummary> {
  const campaign = parseCampaign(source);
  const total = chunksOf(campaign).length;
  const line = progressLine(stderr, LOG_EVERY_MS);
  const hands = usesThreads ? new Threads(source, Math.min(workers, total)) : await handsHere(source);
  let isStopped = false;
  const stop = (): void => {
    if (isStopped) process.exit(1);
    isStopped = true;
    hands.stop();
    line.clear();
    stderr.write("coterie: stopping: jobs are still at work; Ctrl-C once more ends them at once\n");
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  let done = 0;
  try {
    const results = await queue.work(
      hands,
      () => isStopped,
      (jobs, waitsFor) => {
        done = jobs;
        const waits = waitsFor === undefined ? "" : `, waiting ${waitsFor}`;
        line.show(() => `${figure(jobs)} of ${figure(total)} jobs${waits}`);
      },
    );
    if (results === null)
      throw new EnvironmentError("stopped", `stopped after ${done} of ${total} jobs: start it again to go on`);
    return campaignSummary(campaign, await withSmallest(experimentSummaries(campaign, results), hands));
  } finally {
    line.clear();
    for (const signal of SIGNALS) process.off(signal, stop);
    await queue.close();
    await hands.close();
  }
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

function withSmallest(
  experiments: CampaignSummary["experiments"],
  hands: Hands,
): Promise<CampaignSummary["experiments"]> {
  return Promise.all(
    experiments.map(async (each, at) => {
      const kept = each.failures.map(async (failure) => {
        return { ...failure, kept: await hands.smallest(at, failure.smallest.seed, failure.what) };
      });
      return { ...each, failures: await Promise.all(kept) };
    }),
  );
}

/** This process, one job at a time. */
async function handsHere(source: CampaignSource): Promise<Hands> {
  const { campaignWork } = await import("./campaign-work.ts");
  const campaign = parseCampaign(source);
  let isStopped = false;
  const work = async (task: Parameters<typeof campaignWork>[1]) => campaignWork(campaign, task, () => !isStopped);
  return {
    count: 1,
    chunk: (chunk) => work({ chunk }) as ReturnType<Hands["chunk"]>,
    smallest: (experiment, seed, what) =>
      work({ smallest: { experiment, seed, what } }) as ReturnType<Hands["smallest"]>,
    stop() {
      isStopped = true;
    },
    close: () => Promise.resolve(),
  };
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

/** Results are of this text, these scenarios and this code; the name of the file is no matter. */
function identityOf({ text, scenarios }: CampaignSource): string {
  const whole = canonical({ campaign: JSON.parse(text) as object, scenarios });
  return codeHash().update(whole).digest("hex").slice(0, 16);
}

/** Of all that a run may use: in a checkout that is built anew, runs may come out differently, though no version says so. */
function codeHash(): Hash {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const hash = createHash("sha256");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => /[.][jt]s$/.test(file));
  for (const file of files.sort()) hash.update(`${file.split(sep).join("/")}\n`).update(readFileSync(join(root, file)));
  return hash;
}

function writeReport(folder: string, summary: CampaignSummary, seconds: number): void {
  const files: [name: string, content: string][] = [
    ["report.json", `${JSON.stringify({ ...summary, seconds }, null, 2)}\n`],
    ["report.html", campaignPage(summary, seconds)],
  ];
  for (const { name, failures } of summary.experiments)
    for (const [at, { kept }] of failures.entries())
      if (kept !== null) files.push([`${name}-${at + 1}.jsonl`, kept.trace]);
  try {
    mkdirSync(folder, { recursive: true });
    for (const [name, content] of files) {
      const written = join(folder, `.${name}.${process.pid}`);
      writeFileSync(written, content);
      renameSync(written, join(folder, name)); // Others may write the same at the same time.
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-folder", `${unexpected("--out", "a folder that can be written", folder)} (${code})`);
  }
}
