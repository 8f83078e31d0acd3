/** Builds the drawing of a run as plain data: steps on two axes, with messages, marks and lasting states. */
import type { VectorClock } from "../../../../src/core/clocks.ts";
import type { View } from "../../../../src/core/protocol.ts";
import { isSameSpan, type Span, type Spans, spanOf } from "../../../../src/protocols/presentation.ts";
import { clockText, spansOf } from "../../../../src/trace/diagram/diagram.ts";
import type { TraceEntry } from "../../../../src/trace/entry.ts";
import type { Excerpt } from "../../../../src/trace/excerpt.ts";
import { labelOf, lossWords, type Name, nameOf } from "../../../../src/trace/log.ts";
import { MARK_PITCH, type MarkKind } from "../../../../src/trace/picture/marks.ts";
import { type PlacedStep, type Timeline, timelineOf } from "../../../../src/trace/picture/timeline.ts";
import { leads, type Standing } from "../../../../src/trace/standing.ts";
import { stepsOf } from "../../../../src/trace/steps.ts";

/** Positions on an axis, in pixels at the axis's own scale. */
export interface ShownAxis {
  readonly steps: readonly number[];
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
  /** The positions of breaks in times without events. */
  readonly breaks: readonly number[];
  readonly networks: readonly { readonly since: number; readonly words: string }[];
  readonly end: number;
}

export interface ShownMessage {
  readonly id: string;
  readonly name: Name;
  readonly from: number;
  readonly to: number;
  readonly label: string;
  /** A description that includes all fields. */
  readonly title: string;
  /** The step that sent the message. Null if unknown. The next field is the step at which the message ended. */
  readonly sent: number | null;
  readonly ended: number | null;
  readonly lost: string | null;
}

export interface ShownMark {
  readonly step: number;
  readonly node: number;
  readonly kind: MarkKind;
  readonly label: string;
  /** The offset in pixels from other marks of the same step. */
  readonly nudge: number;
}

/**
 * A state of a node that lasts from one step to another. A null beginning means before the first step, and a null end
 * means that the state lasts until the end of the run.
 */
interface Lasting {
  readonly node: number;
  readonly from: number | null;
  readonly to: number | null;
}

export interface ShownDrawing {
  readonly nodes: readonly number[];
  /** The ink of each message type, keyed by its full name. */
  readonly inks: Readonly<Record<string, number>>;
  readonly axes: { readonly events: ShownAxis; readonly time: ShownAxis };
  readonly messages: readonly ShownMessage[];
  readonly marks: readonly ShownMark[];
  readonly lives: readonly (Lasting & {
    readonly condition: "up" | "down" | "paused";
    readonly leads: boolean;
    readonly role: string | null;
  })[];
  readonly states: readonly (Lasting & Span)[];
  readonly held: readonly (Lasting & { readonly text: string; readonly row: number; readonly isSurplus: boolean })[];
  /** The vector clock of each step. Empty if nothing happens on its node. */
  readonly clocks: readonly string[];
}

export interface NetworkTurn {
  readonly at: number;
  /** The conditions after the change. Empty without faults. */
  readonly words: string;
}

export function drawingOf(
  excerpt: Excerpt,
  { withheld, ...spans }: Spans & { readonly withheld: Readonly<Record<string, string>> },
  inks: ShownDrawing["inks"],
  networks: readonly NetworkTurn[],
): ShownDrawing {
  const timed = timelineOf(excerpt, { withheld });
  const isChecked = excerpt.header.madeBy === "checker";
  const counted = isChecked ? timed : timelineOf(byEvents(excerpt), { withheld });
  return {
    nodes: excerpt.header.nodes,
    inks,
    axes: { events: axisOf(counted, excerpt, networks), time: axisOf(timed, excerpt, networks) },
    messages: messagesIn(excerpt, timed),
    marks: timed.steps.flatMap(marksOf),
    lives: excerpt.header.nodes.flatMap((node) => livesOf(node, excerpt, timed.steps)),
    states: excerpt.header.nodes.flatMap((node) => statesOf(node, timed.steps, spans)),
    held: timed.tracks,
    clocks: excerpt.steps.map(({ indices }) => clockText(clockOf(excerpt, indices), excerpt.header.nodes)),
  };
}

/** Replaces times with step numbers. All nodes start at the same step. */
function byEvents(excerpt: Excerpt): Excerpt {
  const rankOf = new Map<number, number>();
  let [rank, wasBeginning] = [0, true];
  for (const { indices } of stepsOf(excerpt.entries)) {
    const isBeginning = indices.every((index) => BEGINNING.has(excerpt.entries[index]?.kind ?? ""));
    if (!(isBeginning && wasBeginning)) rank++;
    wasBeginning &&= isBeginning;
    for (const index of indices) rankOf.set(index, rank);
  }
  const entries = excerpt.entries.map((entry, index): TraceEntry => ({ ...entry, at: rankOf.get(index) ?? rank }));
  const steps = excerpt.steps.map((step) => ({ ...step, at: rankOf.get(step.indices[0] ?? 0) ?? rank }));
  return { ...excerpt, header: { ...excerpt.header, madeBy: "checker" }, entries, steps };
}

const BEGINNING: ReadonlySet<string> = new Set(["start", "view"]);

function axisOf({ steps, breaks, width }: Timeline, excerpt: Excerpt, networks: readonly NetworkTurn[]): ShownAxis {
  const xs = steps.map(({ x }) => x);
  const ticks: { at: number; text: string }[] = [];
  for (const [index, { at }] of excerpt.steps.entries()) {
    const text = timeText(at - excerpt.origin, excerpt.header.madeBy === "checker");
    if (ticks.at(-1)?.text !== text) ticks.push({ at: xs[index] ?? 0, text });
  }
  const placed = networks.map(({ at, words }) => {
    const later = excerpt.steps.findIndex((step) => step.at >= at);
    const next = later === -1 ? xs.length : later;
    const [before, after] = [xs[next - 1] ?? 0, xs[next] ?? width];
    return { since: next === 0 ? 0 : (before + after) / 2, words };
  });
  return { steps: xs, ticks, breaks, networks: placed, end: width };
}

const timeText = (at: number, isCount: boolean): string =>
  isCount ? String(at) : `${at < 0 ? "−" : ""}${Number(Math.abs(at).toFixed(at < 100 ? 1 : 0))} ms`;

const MAX_LABEL = 28;
const MAX_TOLD = 160;

function messagesIn({ entries }: Excerpt, { flights, steps }: Timeline): ShownMessage[] {
  const stepOf = new Map(steps.flatMap(({ step }, place) => step.indices.map((index) => [index, place] as const)));
  return flights.flatMap(({ id, from, to, message, sent, ended, lost }, index): ShownMessage[] => {
    if (from === to || entries.length === 0) return [];
    return [
      {
        id: `${id} ${index}`,
        name: nameOf(message),
        from,
        to,
        label: labelOf(message, MAX_LABEL),
        title: labelOf(message, MAX_TOLD),
        sent: sent === null ? null : (stepOf.get(sent) ?? null),
        ended: ended === null ? null : (stepOf.get(ended) ?? null),
        lost: lost === null ? null : lossWords(lost),
      },
    ];
  });
}

function marksOf({ x, marksX, inscription, step: { node } }: PlacedStep, step: number): ShownMark[] {
  const { marks, words, delivered } = inscription;
  const label = [words, delivered].filter((part) => part !== "").join(" · ");
  const first = marksX - x;
  return marks.map((kind, place) => ({
    step,
    node,
    kind,
    label: place === marks.length - 1 ? label : "",
    nudge: first + place * MARK_PITCH,
  }));
}

function livesOf(node: number, { before }: Excerpt, steps: readonly PlacedStep[]): ShownDrawing["lives"] {
  const stand = (standing: Standing) => ({
    condition: standing.condition,
    leads: leads(node, standing),
    role: standing.condition === "up" ? (standing.view?.role ?? null) : null,
  });
  const first = before.get(node);
  const changes = [
    ...(first === undefined ? [] : [{ at: -1, value: stand(first) }]),
    ...steps.flatMap(({ step, after }, at) => (step.node === node ? [{ at, value: stand(after) }] : [])),
  ];
  const isSame = (a: ReturnType<typeof stand>, b: ReturnType<typeof stand>): boolean =>
    a.condition === b.condition && a.leads === b.leads && a.role === b.role;
  const spans = spansOf(changes, steps.length, isSame);
  // Do not draw a node before it exists.
  const drawn = spans.length > 1 && spans[0]?.value.condition === "down" ? spans.slice(1) : spans;
  return drawn.map(({ from, to, value }) => ({ node, ...endsOf(from, to, steps.length), ...value }));
}

function statesOf(node: number, steps: readonly PlacedStep[], spans: Spans): ShownDrawing["states"] {
  const spanIn = (view: View | null, condition: string): Span | null =>
    condition === "down" || view === null ? null : spanOf(spans, view, node);
  const changes = steps.flatMap(({ step, after }, place) =>
    step.node === node ? [{ at: place, value: spanIn(after.view, after.condition) }] : [],
  );
  return spansOf(changes, steps.length, isSameSpan).flatMap(({ from, to, value }) =>
    value === null ? [] : [{ node, ...endsOf(from, to, steps.length), ...value }],
  );
}

/** Returns the clock of a step. Null if the only event is the loss of a message to the step's node. */
function clockOf({ entries, clocks }: Excerpt, indices: readonly number[]): VectorClock | null {
  const eventful = indices.find((index) => entries[index]?.kind !== "lost");
  return eventful === undefined ? null : (clocks[eventful] ?? {});
}

const endsOf = (from: number, to: number, count: number) => ({
  from: from < 0 ? null : from,
  to: to >= count ? null : to,
});
