/** What `coterie check` reports. */
import type { CheckRequest } from "../experiment/check-request.ts";
import type { CounterexampleLog } from "../experiment/counterexample-log.ts";
import {
  assumptionsOf,
  breakingFaults,
  type CheckOutcome,
  deadlocks,
  explorationReport,
  missing,
  scopeOf,
  whatNext,
  whyUnknown,
} from "../experiment/exploration-report.ts";
import type { CheckAnswer, CheckProgress } from "../experiment/explore.ts";
import { counted, figure } from "../experiment/paragraph.ts";
import { type Block, broken, indented, type Report, styled } from "./report.ts";

/** @param hint printed below; empty: nothing. */
export function checkReport(outcome: CheckOutcome, hint = ""): Report {
  const { request, answer, seconds } = outcome;
  const { spec } = request;
  const form = typeof spec.variant === "string" ? `${spec.protocol} (${spec.variant})` : spec.protocol;
  return {
    json: explorationReport(outcome),
    sections: [
      [
        `${styled("bold", form)}: ${spec.nodes.length} nodes, ${scopeOf(request)}`,
        ...assumptionsOf(request, answer).map(indented),
      ],
      [...verdictLines(request, answer), ...reachLines(request, answer)],
      ...(answer.log === null ? [] : [logLines(answer, answer.log)]),
      coverageBlocks(answer),
      [styled("dim", work(request, answer, seconds))],
      hint === "" ? [] : [hint],
    ],
  };
}

function verdictLines(request: CheckRequest, answer: CheckAnswer): string[] {
  const { verdict, property, checked, reached } = answer;
  if (verdict === "violated" && property !== null) {
    const isSought = checked.some(({ name, when }) => name === property.name && when === "sometimes");
    const why = isSought ? "It was sought in every run, and none gets there." : "The initial state itself breaks it.";
    const never = answer.log === null ? [indented(why)] : [];
    return [
      `${styled(["bold", "red"], "✗ violated")}  ${styled("bold", property.name)}`,
      indented(property.claim),
      ...never,
      ...breakingFaults(answer).map(indented),
    ];
  }
  if (verdict === "holds")
    return [
      styled(["bold", "green"], "✓ holds"),
      ...breakingFaults(answer).map(indented),
      ...checked.map(({ name, claim: words }) => `  ${styled("bold", name)}: ${broken(words, 2)}`),
    ];
  const seen = reached.length === 0 ? [] : [indented(`seen to happen: ${reached.join(", ")}`)];
  return [
    `${styled(["bold", "yellow"], "? unknown")}  no violation found, but the search was incomplete (not a pass)`,
    indented(whyUnknown(request, answer)),
    indented(whatNext(request, answer)),
    ...seen,
  ];
}

function reachLines(request: CheckRequest, answer: CheckAnswer): string[] {
  if (answer.verdict === "violated") return [];
  const { events, never } = answer.reach;
  const seen = Object.entries(events).map(([event, times]) => `${event} ${figure(times)}`);
  const lacking = missing(request, answer);
  return [
    ...lacking.map((what) => styled("yellow", `  in these runs ${what}: of that they say nothing`)),
    indented(`reached, with the number of situations: ${seen.length === 0 ? "no event" : seen.join(", ")}`),
    ...(never.length === 0 ? [] : [indented(`never ran: ${never.join(", ")}`)]),
  ];
}

function coverageBlocks({ coverage }: CheckAnswer): Block[] {
  if (coverage === null) return [];
  const columns = coverage.handlers.flatMap(({ handler, endings }) =>
    endings.map(({ what, runs }, i) => [i === 0 ? `  ${handler}` : "", figure(runs), what]),
  );
  const never = coverage.never.map((handler) => `  ${styled("yellow", handler)}  never ran`);
  return ["What ran, in how many situations, and how it ended", { columns }, ...never];
}

function ending(loop: number | null, length: number): string[] {
  if (loop === null) return [];
  return loop < length
    ? [`  … and so on from step ${loop + 1}, for ever`]
    : ["  … and nothing more is bound to happen"];
}

function logLines(answer: CheckAnswer, { steps, standing }: CounterexampleLog): string[] {
  const locked = deadlocks(answer).map((line) => broken(line, 2));
  const { loop, shrunkFrom, violatingRun } = answer;
  const width = String(steps.length).length + 2;
  const lines = steps.flatMap(({ deed, consequences }, at) => {
    const number = styled("dim", String(at + 1).padStart(width));
    const mark = loop === at ? [styled("yellow", `${" ".repeat(width)}  ┌ from here on again and again`)] : [];
    const led = consequences.join("; ");
    const fits = width + 2 + deed.length + 4 + led.length <= 80;
    const arrow = fits ? `  → ${led}` : `\n${" ".repeat(width + 4)}→ ${broken(led, width + 6)}`;
    const said = led === "" ? "" : styled("dim", arrow);
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
      ...stateLines(state).map((line) => styled("dim", line)),
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
    return `${" ".repeat(STATE_INDENT)}${broken([...(part === "" ? [] : [`${part}:`]), ...text].join(" "), STATE_INDENT + 2)}`;
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
