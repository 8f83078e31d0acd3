/** `coterie trace FILE --check` and `--until`: a recording held against its protocol, and all states at some point. */
import { InvariantViolation } from "../core/errors.ts";
import type { Vocabulary } from "../core/protocol.ts";
import { figure, wrapped } from "../experiment/paragraph.ts";
import { type Point, protocolOf, replayed } from "../experiment/recording.ts";
import { originOf } from "../trace/excerpt.ts";
import type { Trace } from "../trace/file.ts";
import { logLine, phrase } from "../trace/log.ts";
import type { Replay } from "../trace/replay.ts";
import type { ReplayFinding } from "../trace/replay-findings.ts";
import { list, type Paint, table } from "./terminal.ts";

export interface ReplayWords {
  readonly check?: true;
  readonly until?: Point;
  readonly json?: true;
}

/**
 * Says what the recording shows; `say` takes it.
 * @throws InvariantViolation where `--check` was asked for and a property does not hold, or nobody knows.
 */
export function replayTrace(trace: Trace, words: ReplayWords, paint: Paint, say: (text: string) => void): void {
  const run = replayed(trace, words.until);
  if (words.json === true) say(`${JSON.stringify(machineReadable(trace, run, words))}\n`);
  else {
    const parts = [
      ...(words.check === true ? [checkLines(trace, run, paint)] : []),
      ...(words.until === undefined ? [] : [stateLines(trace, run, paint)]),
    ];
    say(`${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`);
  }
  if (words.check !== true) return;
  const violated = run.findings.filter(({ verdict }) => verdict === "violated").map(({ property }) => property.name);
  if (violated.length > 0) throw new InvariantViolation("violated", `violated: ${violated.join(", ")}`);
  if (run.verdict === "unknown")
    throw new InvariantViolation("unknown", "the recording does not tell, which is no pass");
}

function checkLines(trace: Trace, run: Replay<Vocabulary>, paint: Paint): string[] {
  const { header, entries } = trace;
  const form = header.variant ?? header.form;
  const title = `${paint("bold", header.protocol)} (${form}), from a ${header.madeBy}: ${figure(entries.length)} entries`;
  return [
    `${title}, ${figure(run.steps)} steps followed`,
    "",
    ...run.findings.flatMap((finding) => findingLines(trace, finding, paint)),
    ...run.doubts.map(
      ({ entry, node, sentence }) =>
        `  ${paint("yellow", "!")} node ${node} is lost from entry ${entry + 1} on: ${sentence}`,
    ),
    ...lastWords(trace),
  ];
}

function findingLines(
  trace: Trace,
  { property, verdict, entry, why }: ReplayFinding<Vocabulary>,
  paint: Paint,
): string[] {
  const mark = { holds: paint("green", "✓"), violated: paint("red", "✗"), unknown: paint("yellow", "?") }[verdict];
  const claim = `  ${mark} ${paint("bold", property.name)}: ${wrapped(property.claim, 4)}`;
  const { violation } = trace.header;
  const isEndless = verdict === "unknown" && violation?.property === property.name && violation.loopFrom !== null;
  const repeats = isEndless
    ? `, and the checker says that all from entry ${(violation.loopFrom ?? 0) + 1} on repeats for ever`
    : "";
  const reason = why === "" ? [] : [`    ${why}${repeats}`];
  return [claim, ...reason, ...(entry === null ? [] : [`    from entry ${entry + 1}: ${lineOf(trace, entry)}`])];
}

function lineOf({ header, entries }: Trace, index: number): string {
  const entry = entries[index];
  return entry === undefined ? "" : logLine({ ...entry, at: entry.at - originOf(header, entries) }).trim();
}

/** Entries are handed over a few times a second, so what a process does just before it is killed stays with it. */
function lastWords({ header, entries }: Trace): string[] {
  const crashed = new Set(entries.flatMap(({ kind, node }) => (kind === "crash" ? [node] : [])));
  if (header.madeBy !== "cluster" || crashed.size === 0) return [];
  const who = `node${crashed.size === 1 ? "" : "s"} ${list([...crashed].sort((a, b) => a - b))}`;
  return ["", `  The last moment of ${who}, some 20 ms before the end of the process, may not be in the recording.`];
}

function stateLines(trace: Trace, run: Replay<Vocabulary>, paint: Paint): string[] {
  const { snapshot, lost } = run;
  const protocol = protocolOf(trace.header);
  const at = figure(snapshot.at - originOf(trace.header, trace.entries));
  const rows = snapshot.nodes.map(({ id, state, timers }) => {
    if (state === null) return [`  node ${id}`, lost.includes(id) ? "not known" : "down"];
    const { role, leader } = protocol.view(state, id);
    const led = leader === undefined || leader === id ? "" : leader === null ? ", no leader" : `, follows ${leader}`;
    const waits = timers.map(({ timer, remainingMs }) => `${timer} in ${figure(remainingMs)} ms`).join(", ");
    return [`  node ${id}`, `${role}${led}`, waits];
  });
  const states = snapshot.nodes.map(({ state }) =>
    state === null ? [] : [paint("dim", `      ${JSON.stringify(state)}`)],
  );
  const flights = snapshot.inFlight.map(({ from, to, message }) => `  ${from} → ${to}  ${phrase(message)}`);
  return [
    `${paint("bold", `At ${at} ms`)}`,
    ...table(rows, (cell) => cell).flatMap((line, i) => [line, ...(states[i] ?? [])]),
    ...(flights.length === 0 ? ["  nothing on its way"] : ["", paint("bold", "On the way"), ...flights]),
  ];
}

function machineReadable({ header }: Trace, run: Replay<Vocabulary>, { check, until }: ReplayWords): object {
  const { verdict, doubts, steps, snapshot } = run;
  const properties = run.findings.map(({ property: { name, claim }, ...finding }) => ({ name, claim, ...finding }));
  return {
    protocol: header.protocol,
    nodes: header.nodes.length,
    ...(check === true ? { verdict, properties, doubts, steps } : {}),
    ...(until === undefined ? {} : { snapshot }),
  };
}
