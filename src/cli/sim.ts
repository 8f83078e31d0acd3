/** `coterie sim`: a protocol, or a scenario, in virtual time. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { EnvironmentError, InvariantViolation, UsageError, unexpected } from "../core/errors.ts";
import type { ParsedScenario, Result } from "../experiment/scenario/index.ts";
import { cast } from "../experiment/scenario/soundness.ts";
import { asVariant } from "../experiment/scenario/variants.ts";
import { protocolNames } from "../protocols/index.ts";
import type { TraceEntry } from "../trace/entry.ts";
import { runLogger } from "../trace/log.ts";
import { wholeNumber } from "./arguments.ts";
import type { Invocation, Output } from "./invocation.ts";
import { type Point, point, snapshotFrom } from "./recording.ts";
import { reportText, summaryText } from "./sim-report.ts";
import { play, type Staged, severalRuns } from "./sim-runs.ts";
import {
  continuationOf,
  delay,
  jsonObject,
  milliseconds,
  nodeList,
  nodesOrAll,
  rate,
  type SimWords,
  scenarioOf,
} from "./sim-words.ts";
import { paintFor } from "./terminal.ts";
import { writeSvgFile, writeTraceFile } from "./trace-file.ts";

const MAX_NODES = 10_000_000;
const MAX_SEED = 2 ** 32 - 1;
const MAX_RUNS = 1_000_000;

interface SimOptions extends Omit<SimWords, "until"> {
  readonly from?: string;
  readonly until?: Point;
  readonly protocol?: string;
  readonly runs?: number;
  readonly deliveredOnly?: boolean;
  readonly trace?: string;
  readonly svg?: string;
  readonly log?: true;
  readonly json?: true;
}

export function declare(command: Command, invocation: Invocation): void {
  command
    .description("Runs a protocol on simulated nodes, or a scenario file, and says what came of it.")
    .argument("[protocol|file]", `${protocolNames.join(", ")}; or a scenario file (docs/scenarios.md)`);
  addOutput(addRecording(addNetwork(addNodes(command))))
    .addHelpText("after", EXPLANATION)
    .action((subject: string | undefined, options: SimOptions) => sim(subject, options, invocation));
}

function addNodes(command: Command): Command {
  const count = (word: string): ReturnType<typeof wholeNumber> => wholeNumber(word, 1, 1_000_000);
  return command
    .option("--nodes <n>", "how many nodes, with ids from 0 (default: 5)", wholeNumber("--nodes", 1, MAX_NODES))
    .option("--ring <list>", "ids in the order of the ring, such as 1,15,9,4", nodeList("--ring"))
    .option("--crash <list>", "nodes that are down from the beginning", nodeList("--crash"))
    .option("--started", "nodes start at time 0, instead of having run quietly for long")
    .option("--call <list|all>", "election: who calls it (default: the lowest)", nodesOrAll("--call"))
    .option("--request <list|all>", "mutual exclusion: who asks to enter (default: all)", nodesOrAll("--request"))
    .option("--entries <k>", "mutual exclusion: how often each enters", count("--entries"))
    .option("--send <list|all>", "multicast: who sends (default: all)", nodesOrAll("--send"))
    .option("--messages <k>", "multicast: how many messages each", count("--messages"))
    .option("--propose <list|all>", "consensus: who proposes (default: the lowest)", nodesOrAll("--propose"))
    .option("--variant <name>", "another form of the protocol")
    .option("--protocol <name>", "a scenario's steps under another protocol that it names")
    .option("--options <json>", "the protocol's own options", jsonObject("--options"));
}

function addNetwork(command: Command): Command {
  return command
    .option("--delay <ms>", "10, 1..10, normal:10,2 or lognormal:10,0.5 (default: 10)", delay("--delay"))
    .option("--loss <rate>", "how many messages get lost, 0 to 1", rate("--loss"))
    .option("--duplicate <rate>", "how many arrive twice, 0 to 1", rate("--duplicate"))
    .option("--reorder", "messages of one link may overtake each other")
    .option("--processing <ms>", "how long a node is busy with one message", delay("--processing"))
    .option("--seed <n>", "equal seeds give equal runs (default: 1)", wholeNumber("--seed", 0, MAX_SEED))
    .option(
      "--until <ms>",
      "end the run at this virtual time (default: at rest, or 10000 where nodes start)",
      point("--until", "milliseconds; with --from also #57 for the first 57 entries"),
    )
    .option("--runs <k>", "so many runs, each with the next seed", wholeNumber("--runs", 1, MAX_RUNS));
}

function addRecording(command: Command): Command {
  return command
    .option("--from <trace>", "go on from a recorded run, at the point that --until names: ms, or #57 for 57 entries")
    .option("--for <ms>", "with --from: for so long (default: 10000)", milliseconds("--for"));
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
virtual time, unless --until says otherwise.

Exit codes: 0 ok; 1 a property is violated, or an expectation of the scenario is not met; 2 wrong arguments or scenario.`;

async function sim(subject: string | undefined, options: SimOptions, invocation: Invocation): Promise<void> {
  requireOneOutput(options);
  const staged = await stagedFor(subject, options);
  if (options.runs === undefined) await oneRun(staged, options, invocation);
  else await manyRuns(staged, options.runs, options, invocation);
}

async function stagedFor(subject: string | undefined, options: SimOptions): Promise<Staged> {
  if (options.from !== undefined) return continued(options.from, subject, options);
  if (options.for !== undefined) throw new UsageError("bad-argument", "expected --for to be absent without --from");
  if (subject === undefined)
    throw new UsageError("bad-argument", "expected a protocol, a scenario file or --from, got none of them");
  const parsed = await scenarioFor(subject, options);
  return { ...parsed, cast: cast(parsed.scenario), from: null };
}

/** A recording that goes on otherwise than it did. */
function continued(file: string, subject: string | undefined, { until, ...words }: SimOptions): Staged {
  if (subject !== undefined)
    throw new UsageError(
      "bad-argument",
      unexpected("the protocol", "absent beside --from: the recording has it", subject),
    );
  const stray = (["nodes", "ring", "protocol", "variant", "options", "started"] as const).find(
    (word) => words[word] !== undefined,
  );
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent beside --from: the recording has it`);
  if (until === undefined)
    throw new UsageError(
      "bad-argument",
      "expected --until beside --from: the point to go on from, such as 1500 or #57",
    );
  const recorded = snapshotFrom(file, until);
  const { snapshot, origin, header, protocol } = recorded;
  const from = { ...recorded, snapshot: { ...snapshot, at: snapshot.at - origin } };
  const scenario = continuationOf(from, words);
  const options = header.options ?? {};
  return { scenario, place: () => file, cast: { ...cast({ ...scenario, options: {} }, protocol), options }, from };
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
      return { scenario: scenarioOf(subject, { ...options, ...endOf(until) }), place: () => subject };
    const known = `one of ${protocolNames.join(", ")}, or a scenario file such as x.yaml`;
    throw new UsageError("unknown-protocol", unexpected("the protocol", known, subject));
  }
  const besides = ["seed", "runs", "deliveredOnly", "log", "trace", "svg", "json"];
  const stray = Object.keys({ ...options, ...endOf(until) }).find((word) => !besides.includes(word));
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent: what happens stands in ${subject}`);
  const { parseScenario } = await import("../experiment/scenario/parse.ts"); // It loads a parser of YAML.
  const { scenario: written, place } = parseScenario(textOf(subject), subject);
  const scenario = protocol === undefined ? written : asVariant(written, protocol);
  return { scenario: { ...scenario, seed: options.seed ?? scenario.seed }, place };
}

function endOf(until: Point | undefined): { until?: number } {
  if (until === undefined) return {};
  if ("ms" in until && until.ms > 0) return { until: until.ms };
  if ("ms" in until) throw new UsageError("bad-argument", unexpected("--until", "milliseconds above 0", until.ms));
  const expected = "milliseconds: a number of entries goes with --from";
  throw new UsageError("bad-argument", unexpected("--until", expected, `#${until.entries}`));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError("bad-scenario", `${unexpected("the scenario", "a readable file", file)} (${code})`);
  }
}

async function oneRun(staged: Staged, options: SimOptions, { stdout, stderr }: Invocation): Promise<void> {
  const { scenario, cast: made, from } = staged;
  const { json = false, log = false, trace, svg, deliveredOnly = false } = options;
  const keeps = trace !== undefined || svg !== undefined;
  const entries: TraceEntry[] = [];
  const tell = runLogger();
  const see = (entry: TraceEntry): void => {
    if (log) stdout.write(`${tell(entry)}\n`);
    if (keeps) entries.push(entry);
  };
  const result = await play(staged, { deliveredOnly, ...(log || keeps ? { see } : {}) }, stderr);
  const { ids, protocol } = made;
  const form = from?.header.form ?? "model";
  const simulated = { scenario, options: made.options, nodes: ids, form, properties: result.properties };
  if (trace !== undefined) writeTraceFile(trace, simulated, entries);
  if (svg !== undefined) writeSvgFile(svg, simulated, entries);
  if (json) stdout.write(`${JSON.stringify(machineReadable(staged, ids.length, result))}\n`);
  else {
    const text = reportText({ scenario, nodes: ids.length, result, costs: protocol.costs }, paintFor(stdout));
    stdout.write(`${log ? "\n" : ""}${text}${hint(options, stdout)}`);
  }
  requireSound(result);
}

/** What a newcomer might want next; not for a file or a pipe. */
function hint({ log, trace, svg }: SimOptions, stdout: Output): string {
  if (!stdout.isTTY || log === true || trace !== undefined || svg !== undefined) return "";
  return "\n--log shows what happened line by line, --svg FILE draws it, --trace FILE keeps it\n";
}

function machineReadable({ scenario }: ParsedScenario, nodes: number, result: Result): object {
  const { protocol, seed, name } = scenario;
  const { timeMs, messages, datagrams, lost, outcome, nodesAlive, expectations } = result;
  const sent = "delivered" in outcome ? { messages, datagrams } : { messages };
  const properties = result.properties.map((property) => {
    const { name: claimed, verdict, why } = property;
    return why === "" ? { name: claimed, verdict } : { name: claimed, verdict, why };
  });
  const run = { protocol, nodes, seed, timeMs, ...sent, lost, outcome, properties, nodesAlive };
  return name === protocol ? run : { ...run, scenario: name, expectations };
}

/** @throws InvariantViolation where something is not as it should be. */
function requireSound({ expectations }: Result): void {
  const unmet = expectations.filter(({ passed }) => !passed);
  const violated = unmet.find(({ what }) => what === "violated");
  if (unmet.length === 0) return;
  const [first] = unmet;
  const names = (violated?.actual ?? []) as readonly string[];
  const text =
    unmet.length === 1 && violated !== undefined && names.length > 0
      ? `violated: ${names.join(", ")}`
      : `${unmet.length} of ${expectations.length} expectations not met, first ${first?.what}`;
  throw new InvariantViolation("not-as-expected", text);
}

async function manyRuns(
  staged: Staged,
  runs: number,
  { json, deliveredOnly = false }: SimOptions,
  { words, stdout, stderr }: Invocation,
): Promise<void> {
  const most = MAX_SEED - runs + 1;
  if (staged.scenario.seed > most)
    throw new UsageError(
      "bad-argument",
      unexpected("the seed", `at most ${most}, as each of the ${runs} runs has the next`, staged.scenario.seed),
    );
  const summary = await severalRuns(staged, runs, { deliveredOnly }, words, stderr);
  stdout.write(json === true ? `${JSON.stringify(summary)}\n` : summaryText(summary, paintFor(stdout)));
  const names = summary.violations.map(({ what }) => what).join(", ");
  if (names !== "") throw new InvariantViolation("not-as-expected", `not as expected: ${names}`);
  if (summary.runs < runs) throw new EnvironmentError("stopped", `stopped after ${summary.runs} of ${runs} runs`);
}
