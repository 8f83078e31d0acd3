/** What `coterie sim` reports. */
import { figure, spans } from "../experiment/paragraph.ts";
import type { Judged, Result, Scenario } from "../experiment/scenario/index.ts";
import type { Spread, Staged, Summary } from "../experiment/simulate.ts";
import { alike, publishedCosts, simulationReport, usesIn } from "../experiment/simulation-report.ts";
import type { Entry } from "../protocols/index.ts";
import { type Block, broken, columnLines, marks, type Report, styled } from "./report.ts";

/** The width of names such as `delivered`. */
const NAME_WIDTH = 10;
/** How many items of a long list are printed. */
const SHOWN = 12;

/** What the caller says of the end of a run. */
interface End {
  readonly until?: unknown;
  readonly for?: unknown;
}

/** @param hint printed below; empty: nothing. */
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

/** The virtual time, and what cut off a run that would have continued. */
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

/** What may become of a message on any link. */
function conditions({ lossRate = 0, duplicateRate = 0 }: Scenario["network"]): string {
  const loss = lossRate === 0 ? "" : `, each message lost at a rate of ${lossRate}`;
  return duplicateRate === 0 ? loss : `${loss}, doubled at a rate of ${duplicateRate}`;
}

const agreeing = (nodes: readonly number[]): string =>
  nodes.length === 1 ? `according to node ${nodes[0]}` : `nodes ${spans(nodes)} agree`;

function outcomeLines({ labels }: Scenario, { outcome, nodesAlive }: Result): [string, string][] {
  if ("leader" in outcome)
    return alike(outcome.leader).map(({ value, nodes }) => [
      "leader",
      value === null ? `none known, at ${spans(nodes)}` : `${value} (${agreeing(nodes)})`,
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
    ...columnLines(undefined, rows).map((row, i): [string, string] => [
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

function propertyBlock({ properties }: Result): Block {
  return {
    named: properties.map(({ name, claim, verdict, why, at }) => {
      const text = {
        holds: styled("dim", why === "" ? claim : `${why}: ${claim}`),
        violated: `violated at ${figure(at ?? 0)} ms: it is claimed that ${claim}`,
        unknown: `not known (${why}): ${claim}`,
      }[verdict];
      return [`${marks[verdict]} ${name}`, text];
    }),
  };
}

/** Empty if the only expectation is that all properties hold: they are listed above. */
function expectationLines({ expect }: Scenario, expectations: readonly Judged[]): string[] {
  const isSpoken = Object.keys(expect).length > 1 || expect.violated.length > 0;
  const shown = expectations.filter(({ what }) => what !== "violated" || isSpoken);
  if (shown.length === 0) return [];
  return [
    "expected:",
    ...shown.map(({ what, expected, actual, passed }) => {
      const text = `${what}: ${plain(expected)}${passed ? "" : `, but got ${plain(actual)}`}`;
      return `${passed ? marks.holds : marks.violated} ${broken(text, 2)}`;
    }),
  ];
}

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

type RunsSummary = Omit<Summary, "violations"> & {
  /** With the command that shows the first run of each. */
  readonly violations: readonly { readonly what: string; readonly seeds: readonly number[]; readonly replay: string }[];
};

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
