/** `coterie sim`: a protocol, or a scenario, in virtual time. */

import type { Command } from "commander";
import { EnvironmentError, InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import type { Experiment } from "../experiment/experiment.ts";
import { optionsFor, searchOptions, UNTIL } from "../experiment/options.ts";
import { figure } from "../experiment/paragraph.ts";
import { type Point, point } from "../experiment/recording.ts";
import type { ParsedScenario, Progress } from "../experiment/scenario/index.ts";
import { labelled } from "../experiment/scenario/labels.ts";
import { asVariant } from "../experiment/scenario/schema.ts";
import { continued, play, playSeveral, type Staged, staged } from "../experiment/simulate.ts";
import { endOf, scenarioOf } from "../experiment/simulation.ts";
import { disappointment, simulatedHeader } from "../experiment/simulation-report.ts";
import { protocolNames } from "../protocols/index.ts";
import { docsPage } from "../runtime/docs-page.ts";
import { vectorClocks } from "../trace/causality.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { runLogger } from "../trace/log.ts";
import { addOptions } from "./experiment-options.ts";
import { followed } from "./followed.ts";
import type { Invocation, Output } from "./invocation.ts";
import { makeAllYoung } from "./many-runs.ts";
import { contentOf } from "./read-file.ts";
import { replayCommand } from "./replay-command.ts";
import { print } from "./report.ts";
import { runsReport, simReport } from "./sim-report.ts";
import { readTraceFile, writeSvgFile, writeTraceFile } from "./trace-file.ts";
import { requireWritable } from "./written-file.ts";

interface SimOptions extends Omit<Experiment, "protocol" | "until"> {
  readonly from?: string;
  readonly until?: Point;
  readonly protocol?: string;
  readonly deliveredOnly?: boolean;
  readonly trace?: string;
  readonly svg?: string;
  readonly log?: true;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Runs a protocol on simulated nodes, or a scenario file, and says what came of it.")
    .argument("[protocol|file]", `${protocolNames.join(", ")}; or a scenario file (${docsPage("scenarios.md")})`);
  const { until: _until, ...options } = optionsFor.simulate; // It may be a number of entries here.
  addOptions(command, { ...options, runs: searchOptions.runs }, "simulate");
  command.option("--protocol <name>", "a scenario's steps under another protocol that it names");
  addOutput(addPoints(command))
    .addHelpText("after", EXPLANATION)
    .action((subject: string | undefined, options: SimOptions) => sim(subject, options, invocation));
}

/** Where a simulation begins and ends: at a point of a recording too. */
function addPoints(command: Command): Command {
  const read = point("milliseconds; with --from also #57 for the first 57 entries");
  return command
    .option("--until <ms>", UNTIL, (text) => read(text, "--until"))
    .option("--from <trace>", "continue a recorded run, from the point that --until names: ms, or #57 for 57 entries");
}

function addOutput(command: Command): Command {
  return command
    .option("--delivered-only", "leave messages out that never arrived, such as those to crashed nodes")
    .option("--log", "print what happens, line by line")
    .option("--trace <file>", "write the trace, as JSON lines")
    .option("--svg <file>", "draw it as a space-time diagram")
    .option("--json", "print the result as JSON");
}

const EXPLANATION = `
Example:
  $ coterie sim bully --nodes 8 --crash 7 --call 4
  $ coterie sim chang-roberts --ring 1,15,9,4,3,17,24 --call 1 --log
  $ coterie sim paxos --propose all --delay 1..40 --runs 1000
  $ coterie sim scenarios/bully-a-highest-crashed.yaml
  $ coterie sim scenarios/order-demonstration.yaml --protocol isis
  $ coterie sim --from recorded.jsonl --until 4000 --crash 2

With --json: { "protocol", "nodes", "seed", "timeMs", "messages": { "total", "byType" }, "lost", "outcome",
  "properties": [{ "name", "verdict": "holds" | "violated" | "unknown", "why"? }], "nodesAlive" }
"outcome" is, by family: { "leader": { node: id | null } }, { "entries": [{ "node", "requestedAt", "enteredAt",
  "exitedAt", "token" }] }, { "delivered": { node: [id] } }, { "decided": { node: value } }, { "suspected": { node: [id] } }.
A scenario adds "scenario" and "expectations": [{ "what", "expected", "actual", "passed" }].
With --runs: { "protocol", "nodes", "seed", "runs", "messages": { "min", "median", "max" }, "timeMs": { … },
  "violations": [{ "what", "seeds", "replay" }] }.
"why" tells why it is unknown; "so far" stands there where it holds in a run that was cut off.
"messages" counts what was sent to other nodes, crashed ones included; "lost" what never arrived. Multicasts add
  "datagrams": as how many the messages go out where one datagram reaches all others.

Protocols that have to be started and never rest (heartbeat, token-ring) and runs with --started end after 10 s of
virtual time, unless --until says otherwise. Others end at rest, or after 600 s where something is sent again and again, such
as to a majority that is down; later where there are many nodes and entries, or long delays.

Exit codes: 0 ok; 1 a property is violated, or an expectation of the scenario is not met; 2 wrong arguments or scenario.`;

async function sim(subject: string | undefined, options: SimOptions, invocation: Invocation): Promise<void> {
  requireOneOutput(options);
  const made = await stagedFor(subject, options);
  requireWritable({ "--trace": options.trace, "--svg": options.svg });
  if (options.runs === undefined) await oneRun(made, options, invocation);
  else {
    makeAllYoung();
    await manyRuns(made, options.runs, options, invocation);
  }
}

async function stagedFor(subject: string | undefined, options: SimOptions): Promise<Staged> {
  const { from: file, ...words } = options;
  if (file !== undefined) {
    if (subject !== undefined)
      throw new UsageError(
        "bad-argument",
        unexpected("the protocol", "absent beside --from: the recording has it", subject),
      );
    return continued(readTraceFile(file), file, words);
  }
  if (options.for !== undefined) throw new UsageError("bad-argument", "expected --for to be absent without --from");
  if (subject === undefined)
    throw new UsageError("bad-argument", "expected a protocol, a scenario file or --from, got none of them");
  return staged(await scenarioFor(subject, options));
}

function requireOneOutput({ json, log, runs, trace, svg }: SimOptions): void {
  const refuse = (a: string, b: string): never => {
    throw new UsageError("bad-argument", `expected --${a} or --${b}, got both`);
  };
  if (json === true && log === true) refuse("json", "log");
  if (runs !== undefined && log === true) refuse("runs", "log");
  if (runs !== undefined && trace !== undefined) refuse("runs", "trace");
  if (runs !== undefined && svg !== undefined) refuse("runs", "svg");
}

/** The scenario of a file, or the one that the words spell. */
async function scenarioFor(subject: string, { until, protocol, ...options }: SimOptions): Promise<ParsedScenario> {
  if (!/[./\\]/.test(subject)) {
    if (protocol !== undefined)
      throw new UsageError("bad-argument", unexpected("--protocol", "absent beside a protocol", protocol));
    if (protocolNames.includes(subject))
      return { scenario: scenarioOf({ ...options, ...endOf(until), protocol: subject }), place: () => subject };
    const known = `one of ${protocolNames.join(", ")}, or a scenario file such as x.yaml`;
    throw new UsageError("unknown-protocol", unexpected("the protocol", known, subject));
  }
  const besides = ["seed", "runs", "deliveredOnly", "log", "trace", "svg", "json"];
  const stray = Object.keys({ ...options, ...endOf(until) }).find((word) => !besides.includes(word));
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent: what happens stands in ${subject}`);
  const { parseScenario } = await import("../experiment/scenario/parse.ts"); // It loads a parser of YAML.
  const { scenario: written, place } = parseScenario(contentOf(subject, "the scenario", "bad-scenario"), subject);
  const scenario = protocol === undefined ? written : asVariant(written, protocol);
  return { scenario: { ...scenario, seed: options.seed ?? scenario.seed }, place };
}

async function oneRun(made: Staged, options: SimOptions, { stdout, stderr }: Invocation): Promise<void> {
  const { log = false, trace, svg, deliveredOnly = false } = options;
  const keeps = trace !== undefined || svg !== undefined;
  const entries: TraceEntry[] = [];
  const tell = runLogger();
  const see = (entry: TraceEntry): void => {
    if (log) stdout.write(`${tell(entry)}\n`);
    if (keeps) entries.push(entry);
  };
  const slices = play(made, { deliveredOnly, ...(log || keeps ? { see } : {}) });
  const result = await followed(slices, stderr, progressText);
  if (result === null) throw new EnvironmentError("stopped", "stopped before the end");
  const header = simulatedHeader(made, result);
  if (trace !== undefined) writeTraceFile(trace, header, entries);
  if (svg !== undefined)
    writeSvgFile(svg, { header, entries: labelled(entries, made.scenario), clocks: vectorClocks(entries) });
  if (log) stdout.write("\n");
  print(simReport(made, result, options, hint(options, stdout)), options, stdout);
  const why = disappointment(result);
  if (why !== null) throw new InvariantViolation("not-as-expected", why);
}

const progressText = ({ messages, timeMs }: Progress): string =>
  `${figure(messages)} messages, ${figure(timeMs)} ms of virtual time`;

/** What a newcomer might want next; not for a file or a pipe. */
function hint({ log, trace, svg }: SimOptions, stdout: Output): string {
  if (!stdout.isTTY || log === true || trace !== undefined || svg !== undefined) return "";
  return "--log shows what happened line by line, --svg FILE draws it, --trace FILE keeps it";
}

async function manyRuns(
  made: Staged,
  runs: number,
  options: SimOptions,
  { words, stdout, stderr }: Invocation,
): Promise<void> {
  const slices = playSeveral(made, runs, { deliveredOnly: options.deliveredOnly ?? false });
  const summary = await followed(slices, stderr, (done) => `${figure(done)} of ${figure(runs)} runs`);
  const violations = summary.violations.map(({ what, seeds }) => {
    return { what, seeds, replay: replayCommand(words, seeds[0] ?? summary.seed) };
  });
  print(runsReport({ ...summary, violations }), options, stdout);
  const names = violations.map(({ what }) => what).join(", ");
  if (names !== "") throw new InvariantViolation("not-as-expected", `not as expected: ${names}`);
  if (summary.runs < runs) throw new EnvironmentError("stopped", `stopped after ${summary.runs} of ${runs} runs`);
}
