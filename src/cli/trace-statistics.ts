/** The figures of a trace. */
import { figure } from "../experiment/paragraph.ts";
import type { Statistics, TypeStatistics } from "../trace/export/statistics.ts";
import { type Report, type Section, styled } from "./report.ts";

/** How many links are printed, the busiest first. */
const SHOWN_LINKS = 12;

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
    `messages: ${figure(sent)} sent, ${figure(received)} received, ${figure(lost)} lost${reasons === "" ? "" : ` (${reasons})`}, ${figure(underWay)} under way at the end`,
    `longest causal chain: ${figure(causalDepth)} ${causalDepth === 1 ? "message" : "messages"}`,
    ...(firstLeader === null ? [] : [`first leader: node ${firstLeader.node}, at ${ms(firstLeader.atMs)} ms`]),
    ...(crashes === 0 ? [] : [`crashes: ${crashes}, restarts: ${restarts}`]),
    ...listed("time-outs", figures.timeouts),
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
