/** Places marks on the life lines for events at a single node, but only as many as can be distinguished. */
import type { NodeId, Tagged } from "../../../src/core/protocol.ts";
import { deliveredId, nameOf } from "../../../src/trace/log.ts";
import type { MarkKind } from "../../../src/trace/picture/marks.ts";
import type { Life } from "../history/life.ts";
import { label, topicOfEvent } from "../history/phrase-book.ts";
import { type Frame, xOf, yOf } from "./frame.ts";
import type { Happening, Inscription, PlacedMark } from "./picture.ts";

interface Happened {
  readonly marks: readonly Happening[];
  readonly lives: ReadonlyMap<NodeId, Pick<Life, "stretches">>;
}

/** The distance between a delivery and another mark that it is placed next to. */
const BESIDE_PX = 9;
const LEAST_APART_PX = 3;
/** The maximum number of marks. If there are more, marks are placed further apart. */
const MAX_MARKS = 400;
const TURN_WEIGHT = 3;
const KINDS: readonly MarkKind[] = [
  "timeout",
  "command",
  "event",
  "delivery",
  "start",
  "crash",
  "choice",
  "fault",
  "gap",
];

const words = new WeakMap<Happening, Inscription>();

export function placeMarks({ marks, lives }: Happened, frame: Frame): PlacedMark[] {
  const isVisible = (at: number) => {
    const x = xOf(at, frame);
    return x >= 0 && x <= frame.width;
  };
  const happened = fewOf(
    marks.filter(({ at }) => isVisible(at)),
    frame,
  );
  const turns = frame.nodes.flatMap((node) => turnsOf(node, lives.get(node), frame)).filter(({ at }) => isVisible(at));
  return [...turns, ...happened];
}

function fewOf(marks: readonly Happening[], frame: Frame): PlacedMark[] {
  let apartPx = LEAST_APART_PX;
  let few = uncovered(marks, frame, apartPx);
  while (few.length > MAX_MARKS && apartPx <= frame.width) {
    apartPx *= 2;
    few = uncovered(few, frame, apartPx);
  }
  return beside(few.map((mark) => placeMark(mark, frame)));
}

/**
 * If several marks with the same node and shape would overlap, keeps one of them, because there may be thousands. Keeps
 * the first one. For events, keeps the last of the most important ones, which shows the current state.
 */
function uncovered(marks: readonly Happening[], frame: Frame, apartPx: number): Happening[] {
  const kept: Happening[] = [];
  const crowds = new Map<number, { readonly x: number; readonly index: number }>();
  for (const mark of marks) {
    const [x, row] = [xOf(mark.at, frame) + (mark.nudge ?? 0), mark.node * KINDS.length + KINDS.indexOf(mark.kind)];
    const crowd = crowds.get(row);
    if (crowd === undefined || x - crowd.x >= apartPx) {
      crowds.set(row, { x, index: kept.length });
      kept.push(mark);
    } else if (mark.kind === "event" && wordsOf(mark).weight >= wordsOf(kept[crowd.index] as Happening).weight)
      kept[crowd.index] = mark;
  }
  return kept;
}

/** Moves a delivery next to another mark at the same moment, such as the command to send. */
function beside(marks: readonly PlacedMark[]): PlacedMark[] {
  const last = new Map<NodeId, number>();
  return marks
    .toSorted((a, b) => a.x - b.x)
    .map((mark) => {
      const before = last.get(mark.node) ?? -Infinity;
      const isDelivery = mark.shape === "delivery";
      if (!isDelivery) last.set(mark.node, mark.x);
      return isDelivery && mark.x - before < BESIDE_PX ? { ...mark, x: before + BESIDE_PX } : mark;
    });
}

function placeMark(mark: Happening, frame: Frame): PlacedMark {
  return {
    key: `mark ${mark.key}`,
    at: mark.at,
    node: mark.node,
    shape: mark.kind,
    ...wordsOf(mark),
    mark,
    x: xOf(mark.at, frame) + (mark.nudge ?? 0),
    y: yOf(mark.node, frame) ?? 0,
  };
}

/**
 * Returns the text of a mark. It is cached because it is the same in every picture, and ten pictures are drawn per
 * second.
 */
function wordsOf(mark: Happening): Inscription {
  if (mark.inscription !== undefined) return mark.inscription;
  let known = words.get(mark);
  if (known === undefined) {
    const { content, kind, name } = mark;
    known = { label: content === null ? name.short : labelOf(kind, content), weight: weightOf(mark) };
    words.set(mark, known);
  }
  return known;
}

function labelOf(kind: MarkKind, content: Tagged): string {
  if (kind === "delivery") return deliveredId(content) ?? "";
  return kind === "event" ? label(content) : nameOf(content).short;
}

/** Returns marks for the starts and ends of a process. */
function turnsOf(node: NodeId, life: Pick<Life, "stretches"> | undefined, frame: Frame): PlacedMark[] {
  const stretches = life?.stretches() ?? [];
  const y = yOf(node, frame) ?? 0;
  return stretches.flatMap(({ from, condition }, index): PlacedMark[] => {
    const before = stretches[index - 1]?.condition;
    const [was, is] = [before === "gone", condition === "gone"];
    if (before === undefined || was === is) return [];
    const shape = is ? "crash" : "start";
    const placed = { x: xOf(from, frame), y, label: shape, weight: TURN_WEIGHT, mark: null };
    return [{ key: `${shape} ${node} ${from}`, at: from, node, shape, ...placed }];
  });
}

function weightOf({ kind, content }: Happening): number {
  if (kind === "event" && content !== null) return topicOfEvent(content) === "suspicion" ? 1 : 3;
  return kind === "command" || kind === "delivery" ? 2 : 0;
}
