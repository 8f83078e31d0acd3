/**
 * Draws a trace for a terminal: one column per node, one row per step, and a line from the sender's column when a
 * message arrives. The text to the right describes the rest and may wrap onto more rows.
 */
import type { NodeId, View } from "../../core/protocol.ts";
import { clockText, diagramOf } from "../diagram/diagram.ts";
import type { TraceEntry } from "../entry.ts";
import type { Excerpt } from "../excerpt.ts";
import { deliveredId, labelOf, lossWords, nameOfWord } from "../log.ts";
import { leads, type Standing } from "../standing.ts";
import type { Flight, Step } from "../steps.ts";
import { becoming } from "./marks.ts";

export type LaneStyle =
  | "quiet"
  | "message"
  | "lost"
  | "start"
  | "crash"
  | "timeout"
  | "command"
  | "event"
  | "held"
  | "plain";

export interface LaneOptions {
  /** The number of characters per line. */
  readonly columns: number;
  readonly paint: (style: LaneStyle, text: string) => string;
  /** Whether each row begins with the vector clock of its step. Default: false. */
  readonly clocks?: boolean;
}

interface Cell {
  readonly letter: string;
  readonly style: LaneStyle;
}

const TIME_COLUMNS = 10;
const LEAST_WORDS = 26;
const LEAST_PITCH = 3;
const WIDEST_PITCH = 8;
/** A pause gets a row of its own if it is longer than this multiple of the median pause. */
const SILENCE = 12;

/** Draws an excerpt. Returns null if there are too many nodes for the number of columns. */
export function drawLanes(excerpt: Excerpt, { columns, paint, clocks = false }: LaneOptions): string[] | null {
  const { header, steps, origin } = excerpt;
  const { nodes, violation } = header;
  const wish = Math.max(LEAST_WORDS, Math.floor(columns * 0.45));
  const wished = Math.floor((columns - TIME_COLUMNS - wish) / Math.max(1, nodes.length));
  const fits = Math.floor((columns - TIME_COLUMNS - LEAST_WORDS) / Math.max(1, nodes.length));
  const pitch = Math.min(WIDEST_PITCH, Math.max(wished, Math.min(LEAST_PITCH, fits)));
  if (pitch < LEAST_PITCH) return null;
  const place = new Map(nodes.map((node, index) => [node, index * pitch + (pitch >> 1)]));
  const width = nodes.length * pitch;
  const { points, arrows } = diagramOf(excerpt);
  const flights = new Map(arrows.flatMap((flight) => (flight.ended === null ? [] : [[flight.ended, flight]])));
  const standings = new Map<NodeId, Standing>(excerpt.before);
  const silence = silenceOf(steps);
  const digits = steps.every(({ at }) => Number.isInteger(at - origin)) ? 0 : 1;
  const lines: string[] = [];

  const quietRow = (): Cell[] => laneCells(nodes, place, standings, width);
  function put(time: string, cells: readonly Cell[], words: readonly Words[]): void {
    const rows = wrapped(words, columns - TIME_COLUMNS - width - 1);
    for (const [index, row] of rows.entries()) {
      const said = row
        .map(({ style, text }, at) => paint(style, at === row.length - 1 ? text.trimEnd() : text))
        .join("");
      const margin = paint("quiet", (index === 0 ? time : "").padStart(TIME_COLUMNS - 2));
      lines.push(`${margin}  ${painted(index === 0 ? cells : quietRow(), paint)} ${said}`.trimEnd());
    }
  }

  const names = blank(width);
  for (const node of nodes) write(names, (place.get(node) ?? 0) - (String(node).length >> 1), String(node), "plain");
  put(header.madeBy === "checker" ? "step" : "ms", names, []);
  let last = steps[0]?.at ?? 0;
  for (const { step, entries: own, before, after, clock } of points) {
    if (violation?.loopFrom !== null && violation?.loopFrom !== undefined && step.indices.includes(violation.loopFrom))
      put("", quietRow(), [{ style: "event", text: "from here on this repeats forever" }]);
    if (step.at - last > silence) put("", quietRow(), []);
    last = step.at;
    standings.set(step.node, after);
    const cells = quietRow();
    const arrived = step.indices.flatMap((index) => flights.get(index) ?? []);
    for (const flight of arrived) drawStroke(cells, flight, place);
    const at = place.get(step.node) ?? 0;
    const symbol = symbolOf(own, newlyHeld(before, after));
    if (symbol !== null) cells[at] = symbol;
    put((step.at - origin).toFixed(digits), cells, [
      ...(clocks && clock !== null ? [{ style: "quiet", text: `${clockText(clock, nodes)} ` } as const] : []),
      ...wordsOf(own, { before, after }, arrived),
    ]);
  }
  if (violation !== null)
    put("", quietRow(), [{ style: "crash", text: `${violation.property} does not hold: ${violation.claim}` }]);
  return lines;
}

function silenceOf(steps: readonly Step[]): number {
  const gaps = steps.slice(1).map(({ at }, index) => at - (steps[index]?.at ?? 0));
  const sorted = gaps.filter((gap) => gap > 0).sort((a, b) => a - b);
  return (sorted[sorted.length >> 1] ?? Number.POSITIVE_INFINITY) * SILENCE;
}

const blank = (width: number): Cell[] => Array.from({ length: width }, () => ({ letter: " ", style: "quiet" }));

function write(cells: Cell[], at: number, text: string, style: LaneStyle): void {
  for (const [index, letter] of [...text].entries()) cells[Math.max(0, at) + index] = { letter, style };
}

/** Digits for the number of held messages, shown next to the life line, where there is space for one character. */
const COUNTS = [..."₁₂₃₄₅₆₇₈₉"];
const MANY = "₊";

function laneCells(
  nodes: readonly NodeId[],
  place: ReadonlyMap<NodeId, number>,
  standings: ReadonlyMap<NodeId, Standing>,
  width: number,
): Cell[] {
  const cells = blank(width);
  for (const node of nodes) {
    const standing = standings.get(node) as Standing;
    const letter = standing.condition === "paused" ? "┊" : leads(node, standing) ? "║" : "│";
    const at = place.get(node) ?? 0;
    if (standing.condition === "down") continue;
    cells[at] = { letter, style: "quiet" };
    const held = standing.view?.held?.length ?? 0;
    if (held > 0) cells[at + 1] = { letter: COUNTS[held - 1] ?? MANY, style: "held" };
  }
  return cells;
}

/** Draws a line from the sender's column to the receiver's. It ends in ▶ or ◀, or in ✗ if the message was lost. */
function drawStroke(cells: Cell[], { from, to, lost, sent }: Flight, place: ReadonlyMap<NodeId, number>): void {
  const [start, end] = [place.get(from) ?? 0, place.get(to) ?? 0];
  if (start === end) return;
  const right = end > start;
  const towards = right ? 1 : -1;
  const style: LaneStyle = lost === null ? "message" : "lost";
  for (let at = start + towards; at !== end; at += towards) {
    const under = cells[at]?.letter;
    cells[at] = { letter: under === "│" ? "┼" : under === "║" ? "╫" : under === "┊" ? "┊" : "─", style };
  }
  const under = cells[start]?.letter;
  const begin = right ? { "│": "├", "║": "╟" } : { "│": "┤", "║": "╢" };
  const alone = right ? "╶" : "╴";
  if (sent !== null) cells[start] = { letter: begin[under as "│"] ?? alone, style };
  cells[end - towards] = { letter: lost === null ? (right ? "▶" : "◀") : "✗", style };
}

/** Returns the ids of the messages that a step added to the hold-back queue. */
function newlyHeld(before: Standing, after: Standing): readonly string[] {
  const known = new Set(before.view?.held);
  return after.view?.held?.filter((id) => !known.has(id)) ?? [];
}

const idOfDelivery = (entry: TraceEntry): string | null => (entry.kind === "event" ? deliveredId(entry.event) : null);

function symbolOf(entries: readonly TraceEntry[], held: readonly string[]): Cell | null {
  const isDelivery = entries.some((entry) => idOfDelivery(entry) !== null);
  switch (entries[0]?.kind) {
    case "start":
      return { letter: "┬", style: "start" };
    case "crash":
      return { letter: "✗", style: "crash" };
    case "timeout":
      return { letter: "◷", style: "timeout" };
    case "command":
      return { letter: "▼", style: "command" };
    case "pause":
    case "resume":
      return { letter: "┊", style: "timeout" };
    case "fault":
    case "gap":
      return { letter: "!", style: "lost" };
    case "lost":
      return null;
    case "receive":
      if (isDelivery) return { letter: "▲", style: "event" };
      return held.length > 0 ? { letter: "○", style: "held" } : { letter: "●", style: "message" };
    default:
      return { letter: "●", style: "message" };
  }
}

interface Words {
  readonly style: LaneStyle;
  readonly text: string;
}

/** Describes a step: its input, events and messages, and the node's new role. */
function wordsOf(
  entries: readonly TraceEntry[],
  { before, after: standing }: { before: Standing; after: Standing },
  arrived: readonly Flight[],
): Words[] {
  const words: Words[] = [];
  const losses: Words[] = [];
  const delivered: string[] = [];
  let after: View | null = null;
  const sends = new Map<string, NodeId[]>();
  for (const entry of entries) {
    if (entry.kind === "send") {
      const name = labelOf(entry.message, 60);
      sends.set(name, [...(sends.get(name) ?? []), entry.to]);
    } else if (entry.kind === "view") after = entry.view;
    else if (idOfDelivery(entry) !== null) delivered.push(idOfDelivery(entry) as string);
    else (entry.kind === "lost" ? losses : words).push(wordFor(entry, arrived));
  }
  const sent = [...sends].map(([name, to]) => `${name} to ${to.join(", ")}`);
  if (sent.length > 0) words.push({ style: "message", text: `sends ${sent.join("; ")}` });
  const isTold = words.some(({ style }) => style === "event");
  const turn = after === null ? "" : becoming(before.view, after, entries[0]?.node ?? 0, isTold);
  const turns: Words[] = turn === "" ? [] : [{ style: "quiet", text: `is ${turn}` }];
  const ids = newlyHeld(before, standing);
  const held: Words[] = ids.length === 0 ? [] : [{ style: "held", text: `holds back ${ids.join(", ")}` }];
  if (delivered.length > 0) words.push({ style: "event", text: `delivers ${delivered.join(", ")}` });
  const all = [...words, ...losses, ...held, ...turns];
  return all.map((each, index) => (index === all.length - 1 ? each : { ...each, text: `${each.text}; ` }));
}

type Told = Exclude<TraceEntry, { kind: "send" | "view" }>;

function wordFor(entry: Told, arrived: readonly Flight[]): Words {
  switch (entry.kind) {
    case "start":
      return { style: "start", text: "starts" };
    case "crash":
      return { style: "crash", text: "crashes" };
    case "pause":
      return { style: "timeout", text: "pauses" };
    case "resume":
      return { style: "timeout", text: "resumes" };
    case "timeout":
      return { style: "timeout", text: `times out: ${nameOfWord(entry.timer).short}` };
    case "command":
      return { style: "command", text: `receives command ${labelOf(entry.command, 60)}` };
    case "event":
      return { style: "event", text: `» ${labelOf(entry.event, 60)}` };
    case "receive":
      return { style: "plain", text: `${labelOf(entry.message, 60)} from ${entry.from}` };
    case "lost": {
      const flight = arrived.find(({ id }) => id === entry.id);
      const what = flight === undefined ? "a message" : labelOf(flight.message, 60);
      const from = flight === undefined ? "" : ` from ${flight.from}`;
      return { style: "lost", text: `${what}${from} to ${entry.to} is lost (${lossWords(entry.why)})` };
    }
    case "choice":
      return { style: "plain", text: `chooses ${entry.label}: ${JSON.stringify(entry.option)}` };
    case "fault":
      return { style: "lost", text: entry.what };
    case "gap":
      return { style: "lost", text: `${entry.dropped} entries are missing` };
  }
}

/** Wraps text into rows of at most `width` letters, preferably between words. */
function wrapped(words: readonly Words[], width: number): Words[][] {
  const rows: Words[][] = [[]];
  let used = 0;
  for (const { style, text } of words) {
    for (const piece of text.match(/\S+\s*/g) ?? []) {
      const long = [...piece.trimEnd()].length;
      if (used > 0 && used + long > width) {
        rows.push([]);
        used = 0;
      }
      rows.at(-1)?.push({ style, text: piece });
      used += [...piece].length;
    }
  }
  return rows;
}

/** Paints neighboring cells that have the same style together. */
function painted(cells: readonly Cell[], paint: LaneOptions["paint"]): string {
  let line = "";
  for (let at = 0; at < cells.length; ) {
    const { style } = cells[at] as Cell;
    let end = at;
    while (cells[end]?.style === style) end += 1;
    const letters = cells
      .slice(at, end)
      .map(({ letter }) => letter)
      .join("");
    line += letters.trim() === "" ? letters : paint(style, letters);
    at = end;
  }
  return line;
}
