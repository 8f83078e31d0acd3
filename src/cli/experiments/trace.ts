/** `coterie trace`: shows a recorded run in the terminal, draws it, checks it, or exports it to other tools. */
import type { Command } from "commander";
import { EnvironmentError, UsageError, unexpected } from "../../core/errors.ts";
import type { NodeId, Vocabulary } from "../../core/protocol.ts";
import { roleIn } from "../../experiment/counterexample-log.ts";
import { figure } from "../../experiment/paragraph.ts";
import {
  lostMoments,
  notShown,
  type Point,
  point,
  protocolOf,
  repetition,
  replayed as replay,
  replayReport,
} from "../../experiment/recording.ts";
import { asShown } from "../../experiment/scene.ts";
import { drawnAs } from "../../protocols/message-inks.ts";
import { clockText } from "../../trace/diagram/diagram.ts";
import { type Excerpt, excerptOf, originOf } from "../../trace/excerpt.ts";
import { shiviz } from "../../trace/export/shiviz.ts";
import { type Statistics, statisticsOf, type TypeStatistics } from "../../trace/export/statistics.ts";
import { type Trace, writeTrace } from "../../trace/file.ts";
import { logLine, phrase, runLogger } from "../../trace/log.ts";
import { drawLanes, type LaneStyle } from "../../trace/picture/lanes.ts";
import { drawSvg } from "../../trace/picture/svg.ts";
import type { Replay } from "../../trace/replay.ts";
import type { ReplayFinding } from "../../trace/watcher.ts";
import { writeWhole } from "../files.ts";
import { type Manual, withManual } from "../manual.ts";
import { wholeNumber } from "../options.ts";
import {
  broken,
  columnLines,
  ExitWith,
  type Invocation,
  marks,
  type Output,
  print,
  printText,
  type Report,
  type Section,
  styled,
} from "../output.ts";
import { readTraceFile } from "./trace-files.ts";

/** The line width if the output is not a terminal. */
const PIPED_COLUMNS = 120;
const [LEAST_WIDTH, MOST_WIDTH] = [400, 20_000];

export interface TraceOptions {
  readonly svg?: true;
  readonly png?: true;
  readonly shiviz?: true;
  readonly stats?: true;
  readonly log?: true;
  readonly json?: true;
  readonly out?: string;
  readonly from?: number;
  readonly to?: number;
  readonly nodes?: readonly NodeId[];
  readonly hide?: readonly string[];
  readonly fold?: true;
  readonly width?: number;
  readonly clocks?: true;
  readonly check?: true;
  readonly until?: Point;
}

const FORMS = ["svg", "png", "shiviz", "stats", "log", "check"] as const;
/** The options that select a part of a run. */
const PARTS = ["from", "to", "nodes", "hide", "fold"] as const;

export function declare(command: Command, invocation: Invocation): void {
  withManual(command, manual)
    .description("Shows a trace on the terminal, one column per node, or draws, checks, counts or exports it.")
    .argument("<file>", "trace from `coterie sim --trace` or `coterie up --record`, or - for standard input")
    .option("--svg", "draw a space-time diagram as SVG")
    .option("--png", "draw the diagram as PNG (needs the package @resvg/resvg-js)")
    .option("--shiviz", "export a log in ShiViz format")
    .option("--stats", "print statistics: messages, delays, losses, timeouts, causal depth")
    .option("--log", "print one line per entry")
    .option("--check", "replay the run with the protocol's handlers, and check its properties")
    .option(
      "--until <ms>",
      "print the states of all nodes at this time, or with #57 after the first 57 entries",
      (text) => point()(text, "--until"),
    )
    .option("--json", "print the trace as JSON lines with clocks; with --stats, print the statistics")
    .option("--clocks", "add each step's vector clock")
    .option("--out <file>", "write to this file instead of stdout")
    .option("--from <ms>", "start at this time on the axis", time("--from"))
    .option("--to <ms>", "end at this time on the axis", time("--to"))
    .option("--nodes <list>", "show only these nodes and the messages between them, such as 0,2,5", ids)
    .option("--hide <names>", "hide messages, timers and events with these names, such as alive,beat", names)
    .option("--fold", "hide periodic messages that change nothing, as the laboratory does")
    .option(
      "--width <px>",
      "maximum width of the picture (default: 1200)",
      wholeNumber("--width", LEAST_WIDTH, MOST_WIDTH),
    )
    .action((file: string, options: TraceOptions) => trace(file, options, invocation));
}

const manual: Manual = {
  examples: [
    "coterie trace run.jsonl",
    "coterie trace run.jsonl --svg --out run.svg",
    "coterie trace live.jsonl --check",
    "coterie trace live.jsonl --hide alive --from 2000 --to 2500 --png --out failover.png",
  ],
  exitCodes:
    "0 ok; 1 --check finds a violation or cannot decide, or the PNG cannot be made; 2 invalid arguments or file",
  details: `Record a run with \`coterie sim bully --nodes 8 --crash 7 --call 4 --trace run.jsonl\`.

Times are in milliseconds: virtual time in a simulation, and time since the first entry in a recording. In a counterexample, they are
steps. See [traces](../verify/traces.md).

With \`--stats --json\`:

\`\`\`json
{ "protocol", "nodes", "entries", "fromMs", "toMs", "messages": { "sent", "received", "lost", "underWay", "lostBy" },
  "byType": { type: { "sent", "received", "lost", "delayMs": { "min", "median", "p99", "max" } | null } },
  "byNode", "byLink", "timeouts", "events", "crashes", "restarts", "missingEntries",
  "firstLeader": { "node", "atMs" } | null, "causalDepth" }
\`\`\`

With \`--check --json\`, where \`entry\` counts from 0:

\`\`\`json
{ "protocol", "nodes", "verdict", "properties": [{ "name", "claim", "verdict", "entry", "node", "why" }],
  "doubts": [{ "entry", "node", "why", "sentence" }], "steps" }
\`\`\`

With \`--until --json\`, there is also a \`snapshot\`.`,
};

async function trace(recording: string, options: TraceOptions, { stdout, stderr }: Invocation): Promise<void> {
  requireOneForm(options);
  const { out: file } = options;
  const out: Output = file === undefined ? stdout : { write: (content) => writeWhole("--out", file, content) };
  const whole = await readTraceFile(recording);
  if (whole.torn) stderr.write("coterie: ignored the last line, which is incomplete because the recorder was killed\n");
  if (options.check === true || options.until !== undefined) {
    const { report, isPass } = replayed(whole, options);
    print(report, options, out);
    if (!isPass) throw new ExitWith(1);
    return;
  }
  const excerpt = excerptOf(options.fold === true ? asShown(whole) : whole, options);
  if (options.png === true && options.out === undefined && stdout.isTTY === true)
    throw new UsageError("bad-argument", "expected --out FILE with --png, because a terminal cannot show a picture");
  if (options.png === true) out.write(await pngOf(svgOf(excerpt, options)));
  else if (options.stats === true) print(statisticsReport(statisticsOf(excerpt)), options, out);
  else printText(textOf(excerpt, options, out), out);
}

function svgOf(excerpt: Excerpt, options: TraceOptions): string {
  return drawSvg(excerpt, { ...options, ...drawnAs(excerpt.header.protocol) });
}

function textOf(excerpt: Excerpt, options: TraceOptions, out: Output): string {
  if (options.svg === true) return svgOf(excerpt, options);
  if (options.shiviz === true) return shiviz(excerpt);
  if (options.json === true) return writeTrace(excerpt.header, excerpt.entries, excerpt.clocks);
  const lanes =
    options.log === true
      ? null
      : drawLanes(excerpt, {
          ...options,
          columns: out.isTTY === true ? (out.columns ?? PIPED_COLUMNS) : PIPED_COLUMNS,
          paint: laneStyled,
        });
  if (lanes !== null) return `${lanes.join("\n")}\n`;
  const tell = runLogger();
  const clockOf = (index: number): string => {
    if (options.clocks !== true) return "";
    return `  ${clockText(excerpt.clocks[index] ?? {}, excerpt.header.nodes)}`;
  };
  return excerpt.entries
    .map((entry, index) => `${tell({ ...entry, at: entry.at - excerpt.origin })}${clockOf(index)}\n`)
    .join("");
}

const laneStyles = {
  quiet: "dim",
  message: "blue",
  lost: "magenta",
  start: "green",
  crash: "red",
  timeout: "yellow",
  command: "cyan",
  event: "bold",
  held: "yellow",
} as const;

const laneStyled = (style: LaneStyle, text: string): string =>
  style === "plain" ? text : styled(laneStyles[style], text);

function requireOneForm(options: TraceOptions): void {
  const [first, second] = FORMS.filter((form) => options[form] === true);
  if (second !== undefined) throw new UsageError("bad-argument", `expected --${first} or --${second}, got both`);
  if (options.json === true && first !== undefined && first !== "stats" && first !== "check")
    throw new UsageError("bad-argument", `expected --json or --${first}, got both`);
  if (options.width !== undefined && options.svg !== true && options.png !== true)
    throw new UsageError("bad-argument", "expected --width with --svg or --png");
  const bare = (["shiviz", "stats", "check"] as const).find((form) => options[form] === true);
  if (options.clocks === true && (bare !== undefined || options.json === true))
    throw new UsageError("bad-argument", "expected --clocks with --svg, --png, --log or none of them");
  const follows = options.check === true ? "check" : options.until === undefined ? undefined : "until";
  const idle = [...FORMS.filter((form) => form !== "check"), ...PARTS, "clocks" as const].find(
    (word) => options[word] !== undefined,
  );
  if (follows !== undefined && idle !== undefined)
    throw new UsageError(
      "bad-argument",
      `expected --${idle} to be absent with --${follows}, which replays the whole run`,
    );
  const { from, to } = options;
  if (from !== undefined && to !== undefined && from > to)
    throw new UsageError("bad-argument", unexpected("--to", `at least --from, ${from}`, to));
}

function time(option: string): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isFinite(value)) return value;
    throw new UsageError("bad-argument", unexpected(option, "a time in milliseconds", text));
  };
}

function ids(text: string): NodeId[] {
  if (/^\d{1,15}(?:,\d{1,15})*$/.test(text)) return text.split(",").map(Number);
  throw new UsageError("bad-argument", unexpected("--nodes", "a list such as 0,2,5", text));
}

function names(text: string): string[] {
  if (/^[^,\s]+(?:,[^,\s]+)*$/.test(text)) return text.split(",");
  throw new UsageError("bad-argument", unexpected("--hide", "a list such as alive,beat", text));
}

interface ReplayOptions {
  readonly check?: true;
  readonly until?: Point;
}

/**
 * Replays a recording. `isPass` is false if `--check` is given and a property is violated or its verdict is unknown.
 */
export function replayed(trace: Trace, options: ReplayOptions): { readonly report: Report; readonly isPass: boolean } {
  const run = replay(trace, options.until);
  return {
    report: {
      json: replayReport(trace, run, options),
      sections: [
        ...(options.check === true ? checkSections(trace, run) : []),
        ...(options.until === undefined ? [] : stateSections(trace, run)),
      ],
    },
    isPass: options.check !== true || notShown(run) === null,
  };
}

function checkSections(trace: Trace, run: Replay<Vocabulary>): Section[] {
  const { header, entries } = trace;
  const form = header.variant ?? header.form;
  const title = `${styled("bold", header.protocol)} (${form}), from a ${header.madeBy}: ${figure(entries.length)} entries`;
  return [
    [`${title}, ${figure(run.steps)} steps followed`],
    [
      ...run.findings.flatMap((finding) => findingLines(trace, finding)),
      ...run.doubts.map(
        ({ entry, node, sentence }) =>
          `  ${styled("yellow", "!")} the state of node ${node} is unknown from entry ${entry + 1} on: ${sentence}`,
      ),
    ],
    ...lostMoments(trace).map((sentence) => [`  ${sentence}`]),
  ];
}

function findingLines(trace: Trace, { property, verdict, entry, why }: ReplayFinding<Vocabulary>): string[] {
  const claim = `  ${marks[verdict]} ${styled("bold", property.name)}: ${broken(property.claim, 4)}`;
  const reason = why === "" ? [] : [`    ${why}${repetition(trace, property.name, verdict)}`];
  return [claim, ...reason, ...(entry === null ? [] : [`    from entry ${entry + 1}: ${lineOf(trace, entry)}`])];
}

function lineOf({ header, entries }: Trace, index: number): string {
  const entry = entries[index];
  return entry === undefined ? "" : logLine({ ...entry, at: entry.at - originOf(header, entries) }).trim();
}

function stateSections(trace: Trace, run: Replay<Vocabulary>): Section[] {
  const { snapshot, lost } = run;
  const protocol = protocolOf(trace.header);
  const at = figure(snapshot.at - originOf(trace.header, trace.entries));
  const columns = snapshot.nodes.map(({ id, state, timers }) => {
    if (state === null) return [`  node ${id}`, lost.includes(id) ? "unknown" : "down"];
    const waits = timers.map(({ timer, remainingMs }) => `${timer} in ${figure(remainingMs)} ms`).join(", ");
    return [`  node ${id}`, roleIn(protocol, state as never, id), waits];
  });
  const states = snapshot.nodes.map(({ state }) =>
    state === null ? [] : [styled("dim", `      ${JSON.stringify(state)}`)],
  );
  const flights = snapshot.inFlight.map(({ from, to, message }) => `  ${from} → ${to}  ${phrase(message)}`);
  const nodes = columnLines(undefined, columns).flatMap((line, i) => [line, ...(states[i] ?? [])]);
  return [
    [styled("bold", `At ${at} ms`), ...nodes, ...(flights.length === 0 ? ["  no message in transit"] : [])],
    flights.length === 0 ? [] : [styled("bold", "In transit"), ...flights],
  ];
}

/** The maximum number of links to print, starting with the busiest. */
const SHOWN_LINKS = 12;

/** Returns the report of `coterie trace --stats`. */
export function statisticsReport(figures: Statistics): Report {
  const { protocol, nodes, entries, fromMs, toMs, byType, byNode, byLink } = figures;
  const types = Object.entries(byType).map(([type, counts]) => typeRow(type, counts));
  const perNode = nodes.map((node) => {
    const { sent, received, steps } = byNode[node] ?? { sent: 0, received: 0, steps: 0 };
    return [String(node), figure(sent), figure(received), figure(steps)];
  });
  const table = (head: string[], columns: string[][]): Section => (columns.length === 0 ? [] : [{ head, columns }]);
  return {
    json: figures,
    sections: [
      [
        `${styled("bold", protocol)}: ${figure(nodes.length)} nodes, ${figure(entries)} entries, ${ms(fromMs)} to ${ms(toMs)} ms`,
        ...facts(figures),
      ],
      table(["MESSAGE", "SENT", "RECEIVED", "LOST", "DELAY MIN", "MEDIAN", "P99", "MAX"], types),
      table(["NODE", "SENT", "RECEIVED", "STEPS"], perNode),
      Object.keys(byLink).length === 0 ? [] : table(["LINK", "SENT"], linkRows(figures)),
    ],
  };
}

function facts(figures: Statistics): string[] {
  const { messages, crashes, restarts, missingEntries, firstLeader, causalDepth } = figures;
  const { sent, received, lost, underWay, lostBy } = messages;
  const reasons = counted(lostBy);
  return [
    `messages: ${figure(sent)} sent, ${figure(received)} received, ${figure(lost)} lost${reasons === "" ? "" : ` (${reasons})`}, ${figure(underWay)} in transit at the end`,
    `longest causal chain: ${figure(causalDepth)} ${causalDepth === 1 ? "message" : "messages"}`,
    ...(firstLeader === null ? [] : [`first leader: node ${firstLeader.node}, at ${ms(firstLeader.atMs)} ms`]),
    ...(crashes === 0 ? [] : [`crashes: ${crashes}, restarts: ${restarts}`]),
    ...listed("timeouts", figures.timeouts),
    ...listed("events", figures.events),
    ...(missingEntries === 0 ? [] : [`missing entries: ${figure(missingEntries)}`]),
  ];
}

function listed(what: string, counts: Readonly<Record<string, number>>): string[] {
  return Object.keys(counts).length === 0 ? [] : [`${what}: ${counted(counts)}`];
}

const counted = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([word, count]) => `${figure(count)} ${word}`)
    .join(", ");

function typeRow(type: string, { sent, received, lost, delayMs }: TypeStatistics): string[] {
  const delays =
    delayMs === null ? ["-", "-", "-", "-"] : [delayMs.min, delayMs.median, delayMs.p99, delayMs.max].map(ms);
  return [type, figure(sent), figure(received), figure(lost), ...delays];
}

function linkRows({ byLink }: Statistics): string[][] {
  const busiest = Object.entries(byLink).sort(([, a], [, b]) => b - a);
  const rest = busiest.slice(SHOWN_LINKS);
  const others = rest.reduce((sum, [, count]) => sum + count, 0);
  return [
    ...busiest.slice(0, SHOWN_LINKS).map(([link, count]) => [link.replace(">", " → "), figure(count)]),
    ...(rest.length === 0 ? [] : [[`${rest.length} others`, figure(others)]]),
  ];
}

const ms = (value: number): string => (Number.isInteger(value) ? figure(value) : value.toFixed(value < 10 ? 2 : 1));

/** The scale of PNG images. Doubling their size keeps them sharp in print and on high-resolution screens. */
const ZOOM = 2;

/** @throws EnvironmentError if the renderer is not installed */
export async function pngOf(svg: string): Promise<Buffer> {
  const { Resvg } = await import("@resvg/resvg-js").catch((error: unknown) => {
    throw new EnvironmentError(
      "no-renderer",
      "a PNG needs the package @resvg/resvg-js, which is not installed: npm i @resvg/resvg-js, or choose --svg",
      { cause: error },
    );
  });
  return new Resvg(svg, { fitTo: { mode: "zoom", value: ZOOM }, font: { defaultFontFamily: "DejaVu Sans" } })
    .render()
    .asPng();
}
