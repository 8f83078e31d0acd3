/** `coterie check-history`: checks whether a recorded history is linearizable. */
import { type Command, Option } from "commander";
import { UsageError, unexpected } from "../../core/errors.ts";
import { figure } from "../../experiment/paragraph.ts";
import { answerTo, type HistoryAnswer } from "../../history/answer.ts";
import { type History, modelNamed, modelNames, readHistory } from "../../history/index.ts";
import { contentOf } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { ExitWith, type Invocation, print, progressLine, type Report, styled } from "../output.ts";
import { type HistorySearch, Threads, workTogether } from "./threads.ts";

interface CheckHistoryOptions {
  readonly model: string;
  readonly format: "edn" | "json" | "auto";
  readonly keyed?: true;
  readonly timeLimit?: number;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description(
      "Checks whether a history is linearizable: whether its operations could have taken effect one at a time.",
    )
    .argument("<file>", "file with the history, as EDN (Jepsen) or JSON lines")
    .requiredOption("--model <name>", `model of the objects: ${modelNames.join(", ")}`, knownModel)
    .addOption(new Option("--format <format>", "format of the file").choices(["edn", "json", "auto"]).default("auto"))
    .option("--keyed", "every value is [key value], as in Jepsen's `independent`")
    .option("--time-limit <s>", "give up after this number of seconds, with the verdict unknown", seconds)
    .option("--json", "print the answer as JSON")
    .action((file: string, options: CheckHistoryOptions) => checkHistory(file, options, invocation));
}

const manual: Manual = {
  examples: [
    "coterie check-history history.edn --model register",
    "coterie check-history history.jsonl --model register --time-limit 60",
  ],
  exitCodes: "0 linearizable; 1 not linearizable, or unknown (not a pass); 2 invalid arguments or an invalid file",
  details: `EDN lines look like this:

\`\`\`clojure
{:process 0, :type :invoke, :f :write, :value 3}
{:process 0, :type :ok,     :f :write, :value 3}
\`\`\`

or, as JSON lines:

\`\`\`json
{"process":0,"type":"invoke","f":"write","value":3,"key":"x","time":31}
\`\`\`

\`ok\` means that the operation returned, \`fail\` that it did not happen, and \`info\` (or no answer) that it may have happened. Each
\`key\` is a separate object, and objects are checked one at a time.

With \`--json\`:

\`\`\`json
{ "verdict", "model", "operations", "steps", "configurations", "seconds", "objects": [{ "key", "verdict",
  "operations", "culprit": { "operation", "process", "line" } | null, "why", "linearization": [{ "operation", "state" }] }] }
\`\`\``,
};

async function checkHistory(
  file: string,
  options: CheckHistoryOptions,
  { stdout, stderr, usesThreads }: Invocation,
): Promise<void> {
  const history = read(file, options);
  const began = performance.now();
  const line = progressLine(stderr);
  const request: HistorySearch = {
    history,
    model: options.model,
    timeLimitMs: options.timeLimit === undefined ? null : options.timeLimit * 1_000,
  };
  const show = (): void =>
    line.show(
      () => `${figure(history.operations.length)} operations, ${figure((performance.now() - began) / 1_000)} s`,
    );
  const answer = await searched(request, usesThreads, show).catch((error: unknown) => {
    throw inFile(file, error);
  });
  line.clear();
  const seconds = (performance.now() - began) / 1_000;
  const { report } = answer;
  print(historyReport(answer, seconds), options, stdout);
  if (report.verdict !== "holds") throw new ExitWith(1);
}

/** Checks the history within the time limit. */
export function answerWithin(
  { timeLimitMs, ...request }: HistorySearch,
  mayGoOn: (progress: null) => boolean,
): HistoryAnswer {
  const deadline = timeLimitMs === null ? Number.POSITIVE_INFINITY : Date.now() + timeLimitMs;
  return answerTo(request, () => mayGoOn(null) && Date.now() < deadline);
}

async function searched(request: HistorySearch, usesThreads: boolean, show: () => void): Promise<HistoryAnswer> {
  if (!usesThreads) return answerWithin(request, () => true);
  const [answer] = await workTogether(new Threads("history", 1), request, show);
  return answer as HistoryAnswer;
}

function historyReport({ report, objects, text: picture }: HistoryAnswer, seconds: number): Report {
  const mark = {
    holds: styled("green", "✓ holds"),
    violated: styled("red", "✗ violated"),
    unknown: styled("yellow", "? unknown (not a pass)"),
  };
  const counted = objects.length === 1 ? "" : ` on ${figure(objects.length)} objects`;
  const work = `${figure(report.operations)} operations${counted}, ${figure(report.steps)} tried, ${figure(seconds)} s`;
  const head = `${mark[report.verdict]}  linearizability of a ${report.model}: ${work}`;
  // If there are several objects and all are linearizable, a picture of one of them is of no use.
  const isTelling = report.verdict !== "holds" || objects.length === 1;
  return {
    json: { ...report, seconds, objects },
    sections: [[head], isTelling && picture !== "" ? [picture.trimEnd()] : []],
  };
}

/** Adds the name of the file to an error. */
function inFile(file: string, error: unknown): unknown {
  return error instanceof UsageError ? new UsageError(error.code, `${file}: ${error.message}`) : error;
}

function read(file: string, { model, format, keyed }: CheckHistoryOptions): History {
  const content = contentOf(file, "the history", "bad-history");
  const options = { calls: Object.keys(modelNamed(model).calls), ...(keyed === true ? { keyed } : {}) };
  try {
    return readHistory(content, format, options);
  } catch (error) {
    throw inFile(file, error);
  }
}

function knownModel(name: string): string {
  modelNamed(name);
  return name;
}

function seconds(words: string): number {
  const value = /^\d*\.?\d+$/.test(words) ? Number(words) : Number.NaN;
  if (value > 0) return value;
  throw new UsageError("bad-argument", unexpected("--time-limit", "seconds above 0", words));
}
