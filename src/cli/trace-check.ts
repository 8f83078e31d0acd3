/** `coterie trace FILE --check` and `--until`: a recording held against its protocol, and all states at some point. */
import { InvariantViolation } from "../core/errors.ts";
import type { Vocabulary } from "../core/protocol.ts";
import { roleIn } from "../experiment/counterexample-log.ts";
import { figure, wrapped } from "../experiment/paragraph.ts";
import { type Point, protocolOf, replayed } from "../experiment/recording.ts";
import { lostMoments, notShown, repetition, replayReport } from "../experiment/replay-report.ts";
import { originOf } from "../trace/excerpt.ts";
import type { Trace } from "../trace/file.ts";
import { logLine, phrase } from "../trace/log.ts";
import type { Replay } from "../trace/replay.ts";
import type { ReplayFinding } from "../trace/replay-findings.ts";
import { type Paint, table } from "./terminal.ts";

interface ReplayWords {
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
  if (words.json === true) say(`${JSON.stringify(replayReport(trace, run, words))}\n`);
  else {
    const parts = [
      ...(words.check === true ? [checkLines(trace, run, paint)] : []),
      ...(words.until === undefined ? [] : [stateLines(trace, run, paint)]),
    ];
    say(`${parts.map((lines) => lines.join("\n")).join("\n\n")}\n`);
  }
  if (words.check !== true) return;
  const why = notShown(run);
  if (why !== null) throw new InvariantViolation(run.verdict, why);
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
    ...lostMoments(trace).map((words) => `\n  ${words}`),
  ];
}

function findingLines(
  trace: Trace,
  { property, verdict, entry, why }: ReplayFinding<Vocabulary>,
  paint: Paint,
): string[] {
  const mark = { holds: paint("green", "✓"), violated: paint("red", "✗"), unknown: paint("yellow", "?") }[verdict];
  const claim = `  ${mark} ${paint("bold", property.name)}: ${wrapped(property.claim, 4)}`;
  const reason = why === "" ? [] : [`    ${why}${repetition(trace, property.name, verdict)}`];
  return [claim, ...reason, ...(entry === null ? [] : [`    from entry ${entry + 1}: ${lineOf(trace, entry)}`])];
}

function lineOf({ header, entries }: Trace, index: number): string {
  const entry = entries[index];
  return entry === undefined ? "" : logLine({ ...entry, at: entry.at - originOf(header, entries) }).trim();
}

function stateLines(trace: Trace, run: Replay<Vocabulary>, paint: Paint): string[] {
  const { snapshot, lost } = run;
  const protocol = protocolOf(trace.header);
  const at = figure(snapshot.at - originOf(trace.header, trace.entries));
  const rows = snapshot.nodes.map(({ id, state, timers }) => {
    if (state === null) return [`  node ${id}`, lost.includes(id) ? "not known" : "down"];
    const waits = timers.map(({ timer, remainingMs }) => `${timer} in ${figure(remainingMs)} ms`).join(", ");
    return [`  node ${id}`, roleIn(protocol, state as never, id), waits];
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
