/**
 * A trace as a Mermaid sequence diagram, in which a message stands where it arrives, is lost, or was last seen. For each
 * message that a node holds back its life line has an activation bar.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { LossReason, TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { actionText, deliveredId, labelOf } from "../log.ts";
import { type Standing, standingAfter } from "../standing.ts";
import { type Flight, flightsOf } from "../steps.ts";

export function mermaid({ header, entries, before }: Excerpt): string {
  const arrivals = new Map<number, Flight>();
  const departures = new Map<number, Flight>();
  for (const flight of flightsOf(entries)) {
    if (flight.ended !== null) arrivals.set(flight.ended, flight);
    else if (flight.sent !== null) departures.set(flight.sent, flight);
  }
  const { violation, protocol, nodes } = header;
  const standings = new Map<NodeId, Standing>(before);
  const statements = entries.flatMap((entry, index) => {
    const begins = violation?.loopFrom === index ? ["loop for ever"] : [];
    const was = standings.get(entry.node) as Standing;
    const is = standingAfter(was, entry);
    standings.set(entry.node, is);
    const bars = activation(entry.node, heldCount(is) - heldCount(was));
    return [...begins, ...statementsOf(entry, arrivals.get(index), departures.get(index)), ...bars];
  });
  return [
    "---",
    `title: ${JSON.stringify(violation === null ? protocol : `${protocol}: ${violation.property} does not hold`)}`,
    "---",
    "sequenceDiagram",
    ...nodes.map((node) => `  participant ${actor(node)} as node ${node}`),
    ...[...before].flatMap(([node, standing]) => activation(node, heldCount(standing))).map(indented),
    ...statements.map(indented),
    ...(typeof violation?.loopFrom === "number" ? ["  end"] : []),
    "",
  ].join("\n");
}

const indented = (statement: string): string => `  ${statement}`;

const heldCount = ({ condition, view }: Standing): number => (condition === "down" ? 0 : (view?.held?.length ?? 0));

/** So many bars more, or fewer, on the life line. */
const activation = (node: NodeId, change: number): string[] =>
  Array.from({ length: Math.abs(change) }, () => `${change > 0 ? "activate" : "deactivate"} ${actor(node)}`);

function statementsOf(entry: TraceEntry, arrived: Flight | undefined, departed: Flight | undefined): string[] {
  switch (entry.kind) {
    case "receive":
    case "lost":
      return arrived === undefined ? [] : [arrow(arrived)];
    case "send":
      return departed === undefined ? [] : [arrow(departed)];
    case "event": {
      const delivered = deliveredId(entry.event);
      return [note(entry.node, delivered === null ? labelOf(entry.event, 60) : `delivers ${delivered}`)];
    }
    default:
      return [note(entry.node, actionText(entry))];
  }
}

function arrow({ from, to, message, ended, lost }: Flight): string {
  const [stroke, remark] =
    lost === null ? (ended === null ? ["--)", " (under way)"] : ["->>", ""]) : ["-x", ` (${words[lost]})`];
  return `${actor(from)}${stroke}${actor(to)}: ${escaped(labelOf(message, 60) + remark)}`;
}

const words: Readonly<Record<LossReason, string>> = {
  cut: "lost: the link is cut",
  dropped: "lost: dropped on the way",
  overflow: "lost: the queue was full",
  crashed: "lost: the receiver had crashed",
  down: "lost: the receiver was not running",
};

const note = (node: NodeId, text: string): string => `Note over ${actor(node)}: ${escaped(text)}`;

const actor = (node: NodeId): string => `n${node}`;

/** `;` and `#` end a statement or begin an entity, `<` and `>` a tag; the word `end` would end a block. */
const escaped = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .replaceAll(/[#;<>{}]/g, (letter) => `#${letter.codePointAt(0)};`)
    .replaceAll(/\bend\b/gi, (word) => `(${word})`);
