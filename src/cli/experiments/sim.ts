/** `coterie sim`: runs a protocol or a scenario in virtual time. */
import { setImmediate as otherWork } from "node:timers/promises";
import type { Command } from "commander";
import { isProtocolFile, loadProtocol, registeredName } from "../../cluster/protocol-file.ts";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import { type Experiment, optionsFor, searchOptions, UNTIL } from "../../experiment/experiment.ts";
import { figure, spans } from "../../experiment/paragraph.ts";
import { type Point, point } from "../../experiment/recording.ts";
import type { Judged, ParsedScenario, Progress, Result, Scenario } from "../../experiment/scenario/index.ts";
import { labelled } from "../../experiment/scenario/names.ts";
import { asVariant } from "../../experiment/scenario/schema.ts";
import {
  alike,
  continued,
  disappointment,
  endOf,
  play,
  playSeveral,
  publishedCosts,
  type Slices,
  type Spread,
  type Staged,
  type Summary,
  scenarioOf,
  simulatedHeader,
  simulationReport,
  staged,
  usesIn,
} from "../../experiment/simulate.ts";
import { type Entry, protocolNames } from "../../protocols/index.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import { runLogger } from "../../trace/log.ts";
import { vectorClocks } from "../../trace/steps.ts";
import { requireWritable } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { addOptions } from "../options.ts";
import {
  type Block,
  broken,
  columnLines,
  ExitWith,
  type Invocation,
  marks,
  type Output,
  onceUnread,
  print,
  progressLine,
  type Report,
  styled,
} from "../output.ts";
import { scenarioText, unknownSubject } from "./scenario-files.ts";
import { makeAllYoung } from "./threads.ts";
import { readTraceFile, writeSvgFile, writeTraceFile } from "./trace-files.ts";

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
  withManual(command, manual)
    .description("Runs a protocol on simulated nodes, or a scenario file, and reports the result.")
    .argument("[protocol|file]", "a protocol (see `coterie protocols`), your own (./mine.ts), or a scenario file");
  // In this command, `until` can also be a number of entries.
  const { until: _until, ...options } = optionsFor.simulate;
  addOptions(command, { ...options, runs: searchOptions.runs }, "simulate", COMMON);
  command.option("--protocol <name>", "run the scenario's steps with another protocol that it names");
  addOutput(addPoints(command)).action((subject: string | undefined, options: SimOptions) =>
    sim(subject, options, invocation),
  );
}

/** Adds the options that set the beginning and end of a simulation, which may be positions in a recording. */
function addPoints(command: Command): Command {
  const read = point("milliseconds; with --from also #57 for the first 57 entries");
  return command
    .option("--until <ms>", UNTIL, (text) => read(text, "--until"))
    .option(
      "--from <trace>",
      "continue a recorded run from the point given by --until: a time in ms, or a number of entries such as #57",
    );
}

function addOutput(command: Command): Command {
  return command
    .option("--delivered-only", "count only the messages that arrived")
    .option("--log", "print every event, line by line")
    .option("--trace <file>", "write the trace as JSON lines")
    .option("--svg <file>", "draw the run as a space-time diagram")
    .option("--json", "print the result as JSON");
}

/** The options that `--help` describes. The others are only listed by name. */
const COMMON = [
  "nodes",
  "variant",
  "options",
  "crash",
  "delay",
  "loss",
  "call",
  "request",
  "send",
  "propose",
  "runs",
  "seed",
];

const manual: Manual = {
  examples: [
    "coterie sim bully --nodes 8 --crash 7 --call 4",
    "coterie sim paxos --propose all --delay 1..40 --runs 1000",
    "coterie sim scenarios/bully-a-highest-crashed.yaml",
    "coterie sim chang-roberts --ring 1,15,9,4,3,17,24 --call 1 --log",
    "coterie sim scenarios/order-demonstration.yaml --protocol isis",
    "coterie sim ./mine.ts --nodes 4",
    "coterie sim --from recorded.jsonl --until 4000 --crash 2",
  ],
  exitCodes:
    "0 ok; 1 a property is violated, or an expectation of the scenario is not met; 2 invalid arguments or scenario",
  details: `A run ends when it is idle, or after 600 s of virtual time. The limit is higher for many nodes and entries, and for long delays.
Protocols that are never idle (heartbeat, token-ring) and runs with \`--started\` end after 10 s. \`--until\` sets a different end.
[Scenarios](../verify/scenarios.md) describes the format of scenario files.

With \`--json\`:

\`\`\`json
{ "protocol", "nodes", "seed", "timeMs", "messages": { "total", "byType" }, "lost", "outcome",
  "properties": [{ "name", "verdict": "holds" | "violated" | "unknown", "why"? }], "nodesAlive" }
\`\`\`

\`outcome\` depends on the family: \`{ "leader": { node: id | null } }\`, \`{ "entries": [{ "node", "requestedAt", "enteredAt", "exitedAt",
"token" }] }\`, \`{ "delivered": { node: [id] } }\`, \`{ "decided": { node: value } }\`, \`{ "suspected": { node: [id] } }\` or \`{ "roles": { node: text } }\`. \`messages\`
counts messages to other nodes, and \`lost\` counts messages that never arrived; multicasts add \`datagrams\`. \`why\` is \`so far\` if a
property holds in a run that was cut off. A scenario adds \`scenario\` and \`"expectations": [{ "what", "expected", "actual", "passed" }]\`.

With \`--runs\`:

\`\`\`json
{ "protocol", "nodes", "seed", "runs", "messages": { "min", "median", "max" }, "timeMs": { … },
  "violations": [{ "what", "seeds", "replay" }] }
\`\`\``,
};

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
        unexpected("the protocol", "absent with --from, because the recording names it", subject),
      );
    return continued(await readTraceFile(file), file, words);
  }
  if (options.for !== undefined) throw new UsageError("bad-argument", "expected --for to be absent without --from");
  if (subject === undefined) throw new UsageError("bad-argument", "expected a protocol, a scenario file or --from");
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

/** Reads the scenario from a file, or creates it from the options. */
async function scenarioFor(subject: string, given: SimOptions): Promise<ParsedScenario> {
  const { until, protocol, ...options } = given;
  if (!/[./\\]/.test(subject)) {
    if (protocolNames.includes(subject)) return fromOptions(subject, given);
    throw unknownSubject(subject);
  }
  if (isProtocolFile(subject)) return fromOptions(await loadProtocol(subject), given);
  const besides = ["seed", "runs", "deliveredOnly", "log", "trace", "svg", "json"];
  const stray = Object.keys({ ...options, ...endOf(until) }).find((word) => !besides.includes(word));
  if (stray !== undefined)
    throw new UsageError("bad-argument", `expected --${stray} to be absent, because ${subject} describes the run`);
  // Load the YAML parser only when it is needed.
  const { parseScenario } = await import("../../experiment/scenario/parse.ts");
  const { scenario: written, place } = parseScenario(await scenarioText(subject), subject);
  const scenario = protocol === undefined ? written : asVariant(written, registeredName(protocol));
  return { scenario: { ...scenario, seed: options.seed ?? scenario.seed }, place };
}

function fromOptions(name: string, { until, protocol, ...options }: SimOptions): ParsedScenario {
  if (protocol !== undefined)
    throw new UsageError("bad-argument", unexpected("--protocol", "absent with a protocol", protocol));
  return { scenario: scenarioOf({ ...options, ...endOf(until), protocol: name }), place: () => name };
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
  if (disappointment(result) !== null) throw new ExitWith(1);
}

const progressText = ({ messages, timeMs }: Progress): string =>
  `${figure(messages)} messages, ${figure(timeMs)} ms of virtual time`;

/** Returns a suggestion for new users. Shown only on a terminal. */
function hint({ log, trace, svg }: SimOptions, stdout: Output): string {
  if (!stdout.isTTY || log === true || trace !== undefined || svg !== undefined) return "";
  return "--log prints every event, --svg FILE draws the run, --trace FILE saves it";
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
  if (violations.length > 0) throw new ExitWith(1);
  if (summary.runs < runs) throw new EnvironmentError("stopped", `stopped after ${summary.runs} of ${runs} runs`);
}

/** The width of the column with names such as `delivered`. */
const NAME_WIDTH = 10;
/** The maximum number of items to print from a long list. */
const SHOWN = 12;

/** The options that end a run. */
interface End {
  readonly until?: unknown;
  readonly for?: unknown;
}

/** @param hint printed below the report, unless it is empty */
export function simReport(made: Staged, result: Result, end: End, hint = ""): Report {
  const { scenario, cast } = made;
  const nodes = cast.ids.length;
  const costs = publishedCosts(cast.protocol.costs, nodes, scenario, result);
  const fields: [string, string][] = [
    ...outcomeLines(scenario, result),
    ...nameLines(scenario).map((text): [string, string] => ["names", text]),
    ["messages", messageText(scenario, result)],
    ...costs.map(({ when, count }, i): [string, string] => [
      i === 0 ? "textbook" : "",
      `${figure(count)} messages: ${when}`,
    ]),
    ["time", timeText(made, result, end)],
  ];
  return {
    json: simulationReport(made, result),
    sections: [
      [heading(scenario, nodes)],
      scenario.about === "" ? [] : [broken(scenario.about.trim(), 0)],
      [{ named: fields.map(([name, text]) => [styled("dim", name), text]), width: NAME_WIDTH }],
      [propertyBlock(result)],
      expectationLines(scenario, result.expectations),
      hint === "" ? [] : [hint],
    ],
  };
}

/** Returns the virtual time and, if the run was cut off, the option that caused it. */
function timeText({ scenario, from }: Staged, { timeMs, isOver }: Result, end: End): string {
  const { name, protocol, until } = scenario;
  const time = `${figure(timeMs)} ms of virtual time`;
  if (isOver || until === undefined) return time;
  const word = from === null ? "until" : "for";
  const option = end[word] === undefined ? `--${word} by default` : `--${word}`;
  return `${time}; cut off at ${figure(until)} ms (${name === protocol ? option : "until"})`;
}

function heading({ name, protocol, variant, seed, begin, network }: Scenario, nodes: number): string {
  const what = name === protocol ? "" : `${styled("bold", name)}\n`;
  const down = begin.down.length === 0 ? "" : `, ${spans(begin.down)} down`;
  const form = variant === undefined ? protocol : `${protocol} (${variant})`;
  const isTitle = name === protocol;
  return `${what}${isTitle ? styled("bold", form) : form}: ${nodes} ${nodes === 1 ? "node" : "nodes"}${down}, seed ${seed}${conditions(network)}`;
}

/** Describes the message faults that apply to every link. */
function conditions({ lossRate = 0, duplicateRate = 0 }: Scenario["network"]): string {
  const loss = lossRate === 0 ? "" : `, messages lost at a rate of ${lossRate}`;
  return duplicateRate === 0 ? loss : `${loss}, duplicated at a rate of ${duplicateRate}`;
}

const agreeing = (nodes: readonly number[]): string =>
  nodes.length === 1 ? `according to node ${nodes[0]}` : `nodes ${spans(nodes)} agree`;

function outcomeLines({ labels }: Scenario, { outcome, nodesAlive }: Result): [string, string][] {
  if ("leader" in outcome)
    return alike(outcome.leader).map(({ value, nodes }) => [
      "leader",
      value === null ? `none known at ${spans(nodes)}` : `${value} (${agreeing(nodes)})`,
    ]);
  if ("entries" in outcome) return entryLines(outcome.entries);
  if ("delivered" in outcome)
    return alike(outcome.delivered).map(({ value, nodes }) => [
      "delivered",
      `${listed(value.map((id) => labels[id] ?? id))}, at ${spans(nodes)}`,
    ]);
  if ("decided" in outcome) {
    const undecided = nodesAlive.filter((node) => outcome.decided[node] === undefined);
    return [
      ...alike(outcome.decided).map(({ value, nodes }): [string, string] => [
        "decided",
        `${typeof value === "string" ? `“${value}”` : listed(value)}, at ${spans(nodes)}`,
      ]),
      ...(undecided.length === 0 ? [] : [["decided", `nothing, at ${spans(undecided)}`] as [string, string]]),
    ];
  }
  if ("roles" in outcome)
    return alike(outcome.roles).map(({ value, nodes }) => ["role", `${value}, at ${spans(nodes)}`]);
  return alike(outcome.suspected).map(({ value, nodes }) => [
    "suspected",
    `${value.length === 0 ? "no node" : spans(value)}, by ${spans(nodes)}`,
  ]);
}

/** Lists the names that the scenario and its results use for messages, with the messages' ids. */
function nameLines({ labels }: Scenario): string[] {
  const names = Object.entries(labels).map(([id, name]) => `${name} = ${id}`);
  return names.length === 0 ? [] : [names.join(", ")];
}

const listed = (items: readonly string[]): string => (items.length === 0 ? "nothing" : shortened(items));

function shortened(items: readonly unknown[]): string {
  const rest = items.length - SHOWN;
  return rest <= 1 ? items.join(" ") : `${items.slice(0, SHOWN).join(" ")} and ${figure(rest)} more`;
}

function entryLines(entries: readonly Entry[]): [string, string][] {
  const entered = entries
    .filter(({ enteredAt }) => enteredAt !== null)
    .toSorted((a, b) => Number(a.enteredAt) - Number(b.enteredAt));
  const waiting = entries.filter(({ enteredAt }) => enteredAt === null);
  const at = (time: number | null): string => (time === null ? "still inside" : figure(time));
  const rows = entered
    .slice(0, SHOWN)
    .map(({ node, requestedAt, enteredAt, exitedAt, token }) => [
      String(node),
      `requested ${figure(requestedAt)}`,
      `entered ${at(enteredAt)}`,
      exitedAt === null ? "still inside" : `left ${figure(exitedAt)} ms`,
      ...(token === null ? [] : [`token ${figure(token)}`]),
    ]);
  const more = entered.length - rows.length;
  return [
    ...columnLines(undefined, rows).map((row, i): [string, string] => [
      i === 0 ? "entries" : "",
      row.replaceAll(" ", "\u00a0"),
    ]),
    ...(more > 0 ? [["", `and ${figure(more)} more`] as [string, string]] : []),
    ...(entered.length === 0 ? [["entries", "none"] as [string, string]] : []),
    ...(waiting.length === 0
      ? []
      : [["waiting", `${spans(waiting.map(({ node }) => node))}: requested and never entered`] as [string, string]]),
  ];
}

function messageText(scenario: Scenario, result: Result): string {
  const { datagrams, lost, outcome } = result;
  const { total, byType } = result.messages;
  const types = Object.entries(byType).filter(([, count]) => count > 0);
  const detail = types.map(([type, count]) => `${figure(count)} ${type}`).join(", ");
  const uses = usesIn(scenario, result);
  const each = uses > 1 ? `; ${figure(total / uses)} each of ${figure(uses)}` : "";
  const together =
    "delivered" in outcome && datagrams < total ? `; ${figure(datagrams)} if one datagram reaches all` : "";
  const missed = lost === 0 ? "" : `; ${figure(lost)} never arrived`;
  return `${types.length === 0 ? figure(total) : `${figure(total)}: ${detail}`}${each}${together}${missed}`;
}

function propertyBlock({ properties }: Result): Block {
  return {
    named: properties.map(({ name, claim, verdict, why, at }) => {
      const text = {
        holds: styled("dim", why === "" ? claim : `${why}: ${claim}`),
        violated: `violated at ${figure(at ?? 0)} ms; expected: ${claim}`,
        unknown: `unknown (${why}): ${claim}`,
      }[verdict];
      return [`${marks[verdict]} ${name}`, text];
    }),
  };
}

/**
 * Returns the lines about expectations. Empty if the only expectation is that all properties hold, since the properties
 * are listed above.
 */
function expectationLines({ expect }: Scenario, expectations: readonly Judged[]): string[] {
  const isSpoken = Object.keys(expect).length > 1 || expect.violated.length > 0;
  const shown = expectations.filter(({ what }) => what !== "violated" || isSpoken);
  if (shown.length === 0) return [];
  return [
    "expected:",
    ...shown.map(({ what, expected, actual, passed }) => {
      const text = `${what}: ${plain(expected)}${passed ? "" : `, got ${plain(actual)}`}`;
      return `${passed ? marks.holds : marks.violated} ${broken(text, 2)}`;
    }),
  ];
}

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

type RunsSummary = Omit<Summary, "violations"> & {
  /** The violations, each with the command that replays the first run with this violation. */
  readonly violations: readonly { readonly what: string; readonly seeds: readonly number[]; readonly replay: string }[];
};

/** Returns the report on several runs. */
export function runsReport(summary: RunsSummary): Report {
  const { protocol, runs, seed, messages, timeMs, violations } = summary;
  const spread = (name: string, { min, median, max }: Spread, unit: string): string[] => [
    name,
    ...[min, median, max].map((value) => `${figure(value)}${unit}`),
  ];
  const failures = violations.flatMap(({ what, seeds, replay }) => [
    `${marks.violated} ${what}: in ${figure(seeds.length)} of ${figure(runs)} runs, first with seed ${seeds[0]}`,
    `  ${replay}`,
  ]);
  return {
    json: summary,
    sections: [
      [`${styled("bold", protocol)}: ${figure(runs)} runs, seeds ${seed} to ${seed + runs - 1}`],
      [
        {
          head: ["", "least", "median", "most"],
          columns: [spread("messages", messages, ""), spread("time", timeMs, " ms")],
        },
      ],
      failures.length === 0 ? [`${marks.holds} nothing violated`] : failures,
    ],
  };
}

/**
 * Runs the slices to completion and shows their progress. Ctrl-C stops them. A second Ctrl-C ends the process
 * immediately.
 *
 * @throws ExitWith 0 if the reader of stdout closed the pipe
 */
export async function followed<P, T>(slices: Slices<P, T>, stderr: Output, text: (progress: P) => string): Promise<T> {
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
  };
  process.once("SIGINT", stop);
  let isUnread = false;
  const listened = onceUnread(() => {
    isUnread = true;
    stop();
  });
  const line = progressLine(stderr);
  try {
    let slice = slices.next(true);
    while (slice.done !== true) {
      const { value } = slice;
      line.show(() => text(value));
      await otherWork();
      slice = slices.next(!isStopped);
    }
    if (isUnread) throw new ExitWith(0);
    return slice.value;
  } finally {
    line.clear();
    process.removeListener("SIGINT", stop);
    listened();
  }
}

/**
 * Returns the command that logs one of several runs, based on the arguments of the command that executed all of them.
 */
export function replayCommand(words: readonly string[], seed: number): string {
  const kept = words.filter((word, i) => {
    const isValue = words[i - 1] === "--runs" || words[i - 1] === "--seed";
    return !isValue && !/^--(?:runs|seed|json)(?:=|$)/.test(word);
  });
  return ["coterie", ...kept, "--seed", String(seed), "--log"].map(quoted).join(" ");
}

const quoted = (word: string): string => (/^[\w./:,=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
