/** What a simulated run came to, for people. */
import { figure, spans, wrapped } from "../experiment/paragraph.ts";
import type { Judged, Result, Scenario } from "../experiment/scenario/index.ts";
import type { Spread, Staged, Summary } from "../experiment/simulate.ts";
import { alike, publishedCosts, usesIn } from "../experiment/simulation-report.ts";
import type { Entry } from "../protocols/index.ts";
import { type Paint, table } from "./terminal.ts";

const INDENT = 12;
/** Of a long list so many are shown. */
const SHOWN = 12;

/** What the caller says of the end of a run. */
interface End {
  readonly until?: unknown;
  readonly for?: unknown;
}

export function reportText(made: Staged, result: Result, end: End, paint: Paint): string {
  const { scenario, cast } = made;
  const nodes = cast.ids.length;
  const field = (name: string, text: string): string => `${paint("dim", name.padEnd(INDENT))}${wrapped(text, INDENT)}`;
  const lines = [
    heading(scenario, nodes, paint),
    ...(scenario.about === "" ? [] : ["", wrapped(scenario.about.trim(), 0)]),
    "",
    ...outcomeLines(scenario, result).map(([name, text]) => field(name, text)),
    ...nameLines(scenario).map((text) => field("names", text)),
    field("messages", messageText(scenario, result)),
    ...publishedCosts(cast.protocol.costs, nodes, scenario, result).map(({ when, count }, i) =>
      field(i === 0 ? "textbook" : "", `${figure(count)} messages: ${when}`),
    ),
    field("time", timeText(made, result, end)),
    "",
    ...propertyLines(result, paint),
    ...expectationLines(scenario, result.expectations, paint),
  ];
  return `${lines.join("\n")}\n`;
}

/** What would go on is said to have been cut off, and by what. */
function timeText({ scenario, from }: Staged, { timeMs, isOver }: Result, end: End): string {
  const { name, protocol, until } = scenario;
  const time = `${figure(timeMs)} ms of virtual time`;
  if (isOver || until === undefined) return time;
  const word = from === null ? "until" : "for";
  const option = end[word] === undefined ? `--${word} by default` : `--${word}`;
  return `${time}; cut off at ${figure(until)} ms (${name === protocol ? option : "until"})`;
}

function heading({ name, protocol, variant, seed, begin, network }: Scenario, nodes: number, paint: Paint): string {
  const what = name === protocol ? "" : `${paint("bold", name)}\n`;
  const down = begin.down.length === 0 ? "" : `, ${spans(begin.down)} down`;
  const form = variant === undefined ? protocol : `${protocol} (${variant})`;
  const isTitle = name === protocol;
  return `${what}${isTitle ? paint("bold", form) : form}: ${nodes} ${nodes === 1 ? "node" : "nodes"}${down}, seed ${seed}${conditions(network)}`;
}

/** What may become of a message on any link. */
function conditions({ lossRate = 0, duplicateRate = 0 }: Scenario["network"]): string {
  const loss = lossRate === 0 ? "" : `, each message lost at a rate of ${lossRate}`;
  return duplicateRate === 0 ? loss : `${loss}, doubled at a rate of ${duplicateRate}`;
}

function outcomeLines({ labels }: Scenario, { outcome, nodesAlive }: Result): [string, string][] {
  if ("leader" in outcome)
    return alike(outcome.leader).map(({ value, nodes }) => [
      "leader",
      value === null ? `${spans(nodes)} know of none` : `${value}, say ${spans(nodes)}`,
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
  return alike(outcome.suspected).map(({ value, nodes }) => [
    "suspected",
    `${value.length === 0 ? "nobody" : spans(value)}, by ${spans(nodes)}`,
  ]);
}

/** What the scenario calls its messages, as the results do, and by which id everything else knows them. */
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
      `asked ${figure(requestedAt)}`,
      `entered ${at(enteredAt)}`,
      exitedAt === null ? "still inside" : `left ${figure(exitedAt)} ms`,
      ...(token === null ? [] : [`token ${figure(token)}`]),
    ]);
  const more = entered.length - rows.length;
  return [
    ...table(rows, (cell) => cell).map((row, i): [string, string] => [
      i === 0 ? "entries" : "",
      row.replaceAll(" ", "\u00a0"),
    ]),
    ...(more > 0 ? [["", `and ${figure(more)} more`] as [string, string]] : []),
    ...(entered.length === 0 ? [["entries", "none"] as [string, string]] : []),
    ...(waiting.length === 0
      ? []
      : [["waiting", `${spans(waiting.map(({ node }) => node))}: asked and never entered`] as [string, string]]),
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

function propertyLines({ properties }: Result, paint: Paint): string[] {
  const width = Math.max(0, ...properties.map(({ name }) => name.length));
  const claim = (text: string): string => wrapped(text, width + 4);
  return properties.map(({ name, claim: text, verdict, why, at }) => {
    const sign = { holds: paint("green", "✓"), violated: paint("red", "✗"), unknown: paint("yellow", "?") }[verdict];
    const said = {
      holds: why === "" ? text : `${why}: ${text}`,
      violated: `violated at ${figure(at ?? 0)} ms: it is claimed that ${text}`,
      unknown: `not known (${why}): ${text}`,
    }[verdict];
    return `${sign} ${name.padEnd(width)}  ${paint(verdict === "holds" ? "dim" : "reset", claim(said))}`;
  });
}

/** Where nothing is expected but that all properties hold, these have said it already. */
function expectationLines({ expect }: Scenario, expectations: readonly Judged[], paint: Paint): string[] {
  const isSpoken = Object.keys(expect).length > 1 || expect.violated.length > 0;
  const shown = expectations.filter(({ what }) => what !== "violated" || isSpoken);
  if (shown.length === 0) return [];
  return [
    "",
    "expected:",
    ...shown.map(({ what, expected, actual, passed }) => {
      const text = `${what}: ${plain(expected)}${passed ? "" : `, but got ${plain(actual)}`}`;
      return `${passed ? paint("green", "✓") : paint("red", "✗")} ${wrapped(text, 2)}`;
    }),
  ];
}

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** @param violations with the command that shows the first run of each */
export function summaryText(
  {
    protocol,
    runs,
    seed,
    messages,
    timeMs,
    violations,
  }: Omit<Summary, "violations"> & {
    readonly violations: readonly {
      readonly what: string;
      readonly seeds: readonly number[];
      readonly replay: string;
    }[];
  },
  paint: Paint,
): string {
  const spread = (name: string, { min, median, max }: Spread, unit: string): string[] => [
    name,
    `${figure(min)}${unit}`,
    `${figure(median)}${unit}`,
    `${figure(max)}${unit}`,
  ];
  const rows = [["", "least", "median", "most"], spread("messages", messages, ""), spread("time", timeMs, " ms")];
  const failures = violations.flatMap(({ what, seeds, replay }) => [
    `${paint("red", "✗")} ${what}: in ${figure(seeds.length)} of ${figure(runs)} runs, first with seed ${seeds[0]}`,
    `  ${replay}`,
  ]);
  const lines = [
    `${paint("bold", protocol)}: ${figure(runs)} runs, seeds ${seed} to ${seed + runs - 1}`,
    "",
    ...table(rows, (cell, row) => (row === 0 ? paint("dim", cell) : cell)),
    "",
    ...(failures.length === 0 ? [`${paint("green", "✓")} nothing violated`] : failures),
  ];
  return `${lines.join("\n")}\n`;
}
