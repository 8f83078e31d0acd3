/** `coterie check-history`: whether what clients saw of a service could have happened one operation at a time. */
import { type Command, Option } from "commander";
import { InvariantViolation, UsageError, unexpected } from "../../core/errors.ts";
import { figure } from "../../experiment/paragraph.ts";
import { answerTo, type HistoryAnswer } from "../../history/answer.ts";
import { type History, modelNamed, modelNames, readHistory } from "../../history/index.ts";
import { contentOf } from "../files.ts";
import { type Invocation, print, progressLine, type Report, styled } from "../output.ts";
import { type HistorySearch, Threads, workTogether } from "./threads.ts";

interface CheckHistoryOptions {
  readonly model: string;
  readonly format: "edn" | "json" | "auto";
  readonly keyed?: true;
  readonly timeLimit?: number;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Looks for an order in which the operations of a history could have taken effect one by one.")
    .argument("<file>", "the history, as Jepsen writes it (EDN) or as JSON lines")
    .requiredOption("--model <name>", `what the objects are: ${modelNames.join(", ")}`, knownModel)
    .addOption(new Option("--format <format>", "of the file").choices(["edn", "json", "auto"]).default("auto"))
    .option("--keyed", "every value is [key value], as Jepsen's `independent` writes it")
    .option("--time-limit <s>", "stop after so many seconds; the verdict is then unknown", seconds)
    .option("--json", "print the answer as JSON")
    .addHelpText("after", EXPLANATION)
    .action((file: string, options: CheckHistoryOptions) => checkHistory(file, options, invocation));
}

const EXPLANATION = `
Example:
  $ coterie check-history history.edn --model register
  with lines such as
    {:process 0, :type :invoke, :f :write, :value 3}
    {:process 0, :type :ok,     :f :write, :value 3}
  or, as JSON lines,
    {"process":0,"type":"invoke","f":"write","value":3,"key":"x","time":31}

"ok" is a return, "fail" did not happen, "info" (or no answer) may have happened. Objects, told apart by "key", are
checked one by one.

With --json: { "verdict", "model", "operations", "steps", "configurations", "seconds", "objects": [{ "key", "verdict",
  "operations", "culprit": { "operation", "process", "line" } | null, "why", "linearization": [{ "operation", "state" }] }] }
Exit codes: 0 linearizable; 1 not, or unknown, which is never a pass; 2 wrong arguments or a broken file.`;

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
  if (report.verdict === "violated") throw new InvariantViolation("violated", "the history is not linearizable");
  if (report.verdict === "unknown")
    throw new InvariantViolation("unknown", "the search ended before there was an answer, which is no pass");
}

/** The search within its time limit. */
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
    unknown: styled("yellow", "? unknown"),
  };
  const counted = objects.length === 1 ? "" : ` on ${figure(objects.length)} objects`;
  const work = `${figure(report.operations)} operations${counted}, ${figure(report.steps)} tried, ${figure(seconds)} s`;
  const head = `${mark[report.verdict]}  linearizability of a ${report.model}: ${work}`;
  // Of many objects that hold, one picture says nothing.
  const isTelling = report.verdict !== "holds" || objects.length === 1;
  return {
    json: { ...report, seconds, objects },
    sections: [[head], isTelling && picture !== "" ? [picture.trimEnd()] : []],
  };
}

/** What is wrong with a history, with the name of its file. */
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
