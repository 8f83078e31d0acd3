/** `coterie trace FILE --check` and `--until`: a recording held against its protocol, and all states at some point. */
import { InvariantViolation } from "../core/errors.ts";
import type { Vocabulary } from "../core/protocol.ts";
import { roleIn } from "../experiment/counterexample-log.ts";
import { figure } from "../experiment/paragraph.ts";
import { type Point, protocolOf, replayed as replay } from "../experiment/recording.ts";
import { lostMoments, notShown, repetition, replayReport } from "../experiment/replay-report.ts";
import { originOf } from "../trace/excerpt.ts";
import type { Trace } from "../trace/file.ts";
import { logLine, phrase } from "../trace/log.ts";
import type { Replay } from "../trace/replay.ts";
import type { ReplayFinding } from "../trace/replay-findings.ts";
import { broken, columnLines, marks, type Report, type Section, styled } from "./report.ts";

interface ReplayOptions {
  readonly check?: true;
  readonly until?: Point;
}

/** What the recording shows. `failure`: `--check` is given, and a property does not hold or is not known to hold. */
export function replayed(
  trace: Trace,
  options: ReplayOptions,
): { readonly report: Report; readonly failure: InvariantViolation | null } {
  const run = replay(trace, options.until);
  const why = options.check === true ? notShown(run) : null;
  return {
    report: {
      json: replayReport(trace, run, options),
      sections: [
        ...(options.check === true ? checkSections(trace, run) : []),
        ...(options.until === undefined ? [] : stateSections(trace, run)),
      ],
    },
    failure: why === null ? null : new InvariantViolation(run.verdict, why),
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
          `  ${styled("yellow", "!")} node ${node} is lost from entry ${entry + 1} on: ${sentence}`,
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
    if (state === null) return [`  node ${id}`, lost.includes(id) ? "not known" : "down"];
    const waits = timers.map(({ timer, remainingMs }) => `${timer} in ${figure(remainingMs)} ms`).join(", ");
    return [`  node ${id}`, roleIn(protocol, state as never, id), waits];
  });
  const states = snapshot.nodes.map(({ state }) =>
    state === null ? [] : [styled("dim", `      ${JSON.stringify(state)}`)],
  );
  const flights = snapshot.inFlight.map(({ from, to, message }) => `  ${from} → ${to}  ${phrase(message)}`);
  const nodes = columnLines(undefined, columns).flatMap((line, i) => [line, ...(states[i] ?? [])]);
  return [
    [styled("bold", `At ${at} ms`), ...nodes, ...(flights.length === 0 ? ["  nothing on its way"] : [])],
    flights.length === 0 ? [] : [styled("bold", "On the way"), ...flights],
  ];
}
