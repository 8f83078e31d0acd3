/** Marks on the life lines: what happened at one node alone. However many there are, no more are placed than can be told apart. */
import type { NodeId, Tagged } from "../../../src/core/protocol.ts";
import { deliveredId, nameOf } from "../../../src/trace/naming.ts";
import type { Mark } from "../history/chronicle.ts";
import type { Life } from "../history/life.ts";
import { label, topicOfEvent } from "../history/phrase-book.ts";
import { type Frame, xOf, yOf } from "./frame.ts";
import { CHARACTER_PX, placeLabels } from "./labels.ts";

export interface PlacedMark {
  readonly x: number;
  readonly y: number;
  readonly key: string;
  readonly at: number;
  readonly node: NodeId;
  readonly shape: Mark["kind"] | "start" | "crash";
  readonly label: string;
  /** The weightier takes the room for labels. */
  readonly weight: number;
  /** How far to the right the label begins; null where it has no room. */
  readonly labelDx: number | null;
  readonly mark: Mark | null;
}

interface Happened {
  readonly marks: readonly Mark[];
  readonly lives: ReadonlyMap<NodeId, Life>;
}

/** How far marks stand apart that would cover each other. */
const BESIDE_PX = 9;
const LEAST_APART_PX = 3;
/** More elements than this make drawing slow: where there would be more, marks stand further apart. */
const MAX_MARKS = 240;
const TURN_WEIGHT = 3;
const KINDS: readonly Mark["kind"][] = ["timeout", "command", "event", "delivery"];

type Unlabelled = Omit<PlacedMark, "labelDx">;
type Words = Pick<PlacedMark, "label" | "weight">;

const words = new WeakMap<Mark, Words>();

/** @param known Marks of the same frame: those that have not changed are given again. */
export function placeMarks({ marks, lives }: Happened, frame: Frame, known: readonly PlacedMark[]): PlacedMark[] {
  const isVisible = (at: number) => at >= frame.from && at <= frame.to;
  const happened = fewOf(
    marks.filter(({ at }) => isVisible(at)),
    frame,
  );
  const turns = frame.nodes.flatMap((node) => turnsOf(node, lives.get(node), frame)).filter(({ at }) => isVisible(at));
  const byKey = new Map(known.map((mark) => [mark.key, mark]));
  return placeLabels([...turns, ...happened], CHARACTER_PX).map((mark) => {
    const same = byKey.get(mark.key);
    return same !== undefined && same.labelDx === mark.labelDx && same.x === mark.x ? same : mark;
  });
}

function fewOf(marks: readonly Mark[], frame: Frame): Unlabelled[] {
  let apartPx = LEAST_APART_PX;
  let few = uncovered(marks, frame, apartPx);
  while (few.length > MAX_MARKS && apartPx <= frame.width) {
    apartPx *= 2;
    few = uncovered(few, frame, apartPx);
  }
  return beside(few.map((mark) => placeMark(mark, frame)));
}

/**
 * Of marks of one node and shape that would cover each other one stays, since they may come by the thousand: the first, but of
 * events the last of the weightiest, which says how things stand now.
 */
function uncovered(marks: readonly Mark[], frame: Frame, apartPx: number): Mark[] {
  const kept: Mark[] = [];
  const crowds = new Map<number, { readonly x: number; readonly index: number }>();
  for (const mark of marks) {
    const [x, row] = [xOf(mark.at, frame), mark.node * KINDS.length + KINDS.indexOf(mark.kind)];
    const crowd = crowds.get(row);
    if (crowd === undefined || x - crowd.x >= apartPx) {
      crowds.set(row, { x, index: kept.length });
      kept.push(mark);
    } else if (mark.kind === "event" && wordsOf(mark).weight >= wordsOf(kept[crowd.index] as Mark).weight)
      kept[crowd.index] = mark;
  }
  return kept;
}

/** A delivery stands beside a mark of the same moment, such as the command to send. */
function beside(marks: readonly Unlabelled[]): Unlabelled[] {
  const last = new Map<NodeId, number>();
  return marks
    .toSorted((a, b) => a.at - b.at)
    .map((mark) => {
      const before = last.get(mark.node) ?? -Infinity;
      const isDelivery = mark.shape === "delivery";
      if (!isDelivery) last.set(mark.node, mark.x);
      return isDelivery && mark.x - before < BESIDE_PX ? { ...mark, x: before + BESIDE_PX } : mark;
    });
}

function placeMark(mark: Mark, frame: Frame): Unlabelled {
  return {
    key: `mark ${mark.key}`,
    at: mark.at,
    node: mark.node,
    shape: mark.kind,
    ...wordsOf(mark),
    mark,
    x: xOf(mark.at, frame),
    y: yOf(mark.node, frame) ?? 0,
  };
}

/** A mark says the same in every picture, of which there are ten in a second. */
function wordsOf(mark: Mark): Words {
  let known = words.get(mark);
  if (known === undefined) {
    const { content, kind, name } = mark;
    known = { label: content === null ? name.short : labelOf(kind, content), weight: weightOf(mark) };
    words.set(mark, known);
  }
  return known;
}

function labelOf(kind: Mark["kind"], content: Tagged): string {
  if (kind === "delivery") return deliveredId(content) ?? "";
  return kind === "event" ? label(content) : nameOf(content).short;
}

/** Where a process began or ended. */
function turnsOf(node: NodeId, life: Life | undefined, frame: Frame): Unlabelled[] {
  const stretches = life?.stretches() ?? [];
  const y = yOf(node, frame) ?? 0;
  return stretches.flatMap(({ from, condition }, index): Unlabelled[] => {
    const before = stretches[index - 1]?.condition;
    const [was, is] = [before === "gone", condition === "gone"];
    if (before === undefined || was === is) return [];
    const shape = is ? "crash" : "start";
    const placed = { x: xOf(from, frame), y, label: shape, weight: TURN_WEIGHT, mark: null };
    return [{ key: `${shape} ${node} ${from}`, at: from, node, shape, ...placed }];
  });
}

function weightOf({ kind, content }: Mark): number {
  if (kind === "event" && content !== null) return topicOfEvent(content) === "suspicion" ? 1 : 3;
  return kind === "command" || kind === "delivery" ? 2 : 0;
}
