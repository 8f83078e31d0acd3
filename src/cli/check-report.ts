/** What a check came to, for people. */

import type { CheckRequest } from "../experiment/check-request.ts";
import type { CounterexampleLog } from "../experiment/counterexample-log.ts";
import { type CheckOutcome, missing, whyUnknown } from "../experiment/exploration-report.ts";
import { assumptionsOf, breakingFaults, deadlocks, scopeOf, whatNext } from "../experiment/exploration-words.ts";
import type { CheckAnswer, CheckProgress } from "../experiment/explore.ts";
import { counted, figure, wrapped } from "../experiment/paragraph.ts";
import { type Paint, table } from "./terminal.ts";

const INDENT = 2;

export function checkText({ request, answer, seconds }: CheckOutcome, paint: Paint): string {
  const { spec } = request;
  const form = typeof spec.variant === "string" ? `${spec.protocol} (${spec.variant})` : spec.protocol;
  const lines = [
    `${paint("bold", form)}: ${spec.nodes.length} nodes, ${scopeOf(request)}`,
    ...assumptionsOf(request, answer).map((words) => `  ${wrapped(words, INDENT)}`),
    "",
    ...verdictLines(request, answer, paint),
    ...reachLines(request, answer, paint),
    ...(answer.log === null ? [] : ["", ...logLines(answer, answer.log, paint)]),
    ...coverageLines(answer, paint),
    "",
    paint("dim", work(request, answer, seconds)),
  ];
  return `${lines.join("\n")}\n`;
}

function verdictLines(request: CheckRequest, answer: CheckAnswer, paint: Paint): string[] {
  const { verdict, property, checked, reached } = answer;
  const claim = (words: string): string => `  ${wrapped(words, INDENT)}`;
  if (verdict === "violated" && property !== null) {
    const isSought = checked.some(({ name, when }) => name === property.name && when === "sometimes");
    const why = isSought ? "It was sought in every run, and none gets there." : "The initial state itself breaks it.";
    const never = answer.log === null ? [claim(why)] : [];
    return [
      `${paint(["bold", "red"], "✗ violated")}  ${paint("bold", property.name)}`,
      claim(property.claim),
      ...never,
      ...breakingFaults(answer).map(claim),
    ];
  }
  if (verdict === "holds")
    return [
      paint(["bold", "green"], "✓ holds"),
      ...breakingFaults(answer).map(claim),
      ...checked.map(({ name, claim: words }) => `  ${paint("bold", name)}: ${wrapped(words, INDENT)}`),
    ];
  const seen = reached.length === 0 ? [] : [claim(`seen to happen: ${reached.join(", ")}`)];
  return [
    `${paint(["bold", "yellow"], "? unknown")}  nothing was violated as far as was looked, which is no pass`,
    claim(whyUnknown(request, answer)),
    claim(whatNext(request, answer)),
    ...seen,
  ];
}

function reachLines(request: CheckRequest, answer: CheckAnswer, paint: Paint): string[] {
  if (answer.verdict === "violated") return [];
  const { events, never } = answer.reach;
  const seen = Object.entries(events).map(([event, times]) => `${event} ${figure(times)}`);
  const lacking = missing(request, answer);
  return [
    ...lacking.map((what) => paint("yellow", `  in these runs ${what}: of that they say nothing`)),
    `  ${wrapped(`reached, in so many situations: ${seen.length === 0 ? "no event" : seen.join(", ")}`, INDENT)}`,
    ...(never.length === 0 ? [] : [`  ${wrapped(`never ran: ${never.join(", ")}`, INDENT)}`]),
  ];
}

function coverageLines({ coverage }: CheckAnswer, paint: Paint): string[] {
  if (coverage === null) return [];
  const rows = coverage.handlers.flatMap(({ handler, endings }) =>
    endings.map(({ what, runs }, i) => [i === 0 ? `  ${handler}` : "", figure(runs), what]),
  );
  const never = coverage.never.map((handler) => `  ${paint("yellow", handler)}  never ran`);
  return ["", "What ran, in how many situations, and how it ended", ...table(rows, (cell) => cell), ...never];
}

function ending(loop: number | null, length: number): string[] {
  if (loop === null) return [];
  return loop < length
    ? [`  … and so on from step ${loop + 1}, for ever`]
    : ["  … and nothing more is bound to happen"];
}

function logLines(answer: CheckAnswer, { steps, standing }: CounterexampleLog, paint: Paint): string[] {
  const locked = deadlocks(answer).map((line) => wrapped(line, 2));
  const { loop, shrunkFrom, violatingRun } = answer;
  const width = String(steps.length).length + 2;
  const lines = steps.flatMap(({ deed, consequences }, at) => {
    const number = paint("dim", String(at + 1).padStart(width));
    const mark = loop === at ? [paint("yellow", `${" ".repeat(width)}  ┌ from here on again and again`)] : [];
    const led = consequences.join("; ");
    const fits = width + 2 + deed.length + 4 + led.length <= 80;
    const arrow = fits ? `  → ${led}` : `\n${" ".repeat(width + 4)}→ ${wrapped(led, width + 6)}`;
    const said = led === "" ? "" : paint("dim", arrow);
    return [...mark, `${number}  ${deed}${said}`];
  });
  return [
    ...lines,
    ...ending(loop, steps.length),
    "",
    ...(violatingRun === null ? [] : [`Found in run ${violatingRun + 1}.`]),
    ...(shrunkFrom === null || shrunkFrom === steps.length
      ? []
      : [`Shrunk from ${shrunkFrom} moves to ${steps.length}.`]),
    ...(locked.length === 0 ? [] : [...locked, ""]),
    "In the end",
    ...standing.flatMap(({ node, role, state }) => [
      `  node ${node}  ${role}`,
      ...stateLines(state).map((line) => paint("dim", line)),
    ]),
  ];
}

/** A state, whole: a line for each part of an assembly. */
function stateLines(state: object | null): string[] {
  if (state === null) return [];
  const fields = Object.entries(state);
  const areParts = fields.every(([, value]) => typeof value === "object" && value !== null && !Array.isArray(value));
  const parts: [string, object][] = areParts && fields.length > 0 ? fields : [["", state]];
  return parts.map(([part, inner]) => {
    const text = Object.entries(inner).map(
      ([field, value]) => `${field}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    return `${" ".repeat(STATE_INDENT)}${wrapped([...(part === "" ? [] : [`${part}:`]), ...text].join(" "), STATE_INDENT + 2)}`;
  });
}

const STATE_INDENT = 10;

function work({ workers }: CheckRequest, answer: CheckAnswer, seconds: number): string {
  const { states, transitions, depth, runs, memoryBytes } = answer;
  const made = runs === null ? "" : `${counted(runs, { one: "run", more: "runs" })}, `;
  const counts = `${made}${figure(states)} states${runs === null ? "" : " visited"}`;
  const rate = seconds < 0.1 ? "" : ` (${figure(Math.round(states / seconds))} states/s)`;
  const threads = workers === 1 ? "" : ` on ${workers} threads`;
  return `${counts}, ${figure(transitions)} transitions, depth ${depth}, ${figure(seconds)} s${rate}${threads}, ${megabytes(memoryBytes)}`;
}

export function progressText(progress: CheckProgress, seconds: number): string {
  const { phase, runs, states, transitions, depth, memoryBytes } = progress;
  if (phase === "shrinking") return `violated; looking for a shorter run, ${figure(seconds)} s`;
  if (phase === "following") return `${figure(states)} states; looking for runs without end, ${figure(seconds)} s`;
  const count = runs === null ? "" : `${figure(runs)} runs, `;
  const rate = figure(Math.round(states / Math.max(seconds, 0.001)));
  return `${count}${figure(states)} states, ${figure(transitions)} transitions, ${rate} states/s, depth ${depth}, ${megabytes(memoryBytes)}`;
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MB`;
