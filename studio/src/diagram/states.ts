/**
 * Places a node's lasting states as bands along its life line, such as waiting, being in the critical section, or
 * serving a term of leadership.
 */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Span } from "../../../src/protocols/presentation.ts";
import { type Frame, xOf, yOf } from "./frame.ts";

export interface StateSpan extends Span {
  readonly node: NodeId;
  readonly from: number;
  readonly to: number;
}

export interface PlacedState extends Span {
  readonly key: string;
  readonly x1: number;
  readonly x2: number;
  /** The y coordinate of the life line. */
  readonly y: number;
  /** Whether the state begins within the frame. */
  readonly beginsHere: boolean;
}

/** The name of each kind of state. `words` adds details. */
export const STATE_NAMES: Readonly<Record<Span["kind"], string>> = {
  inside: "inside",
  waiting: "waits",
  leading: "leads",
  electing: "in an election",
  preparing: "prepares",
  proposing: "proposes",
  view: "in a view",
  changing: "changes views",
};

/** Returns the text shown where a state begins. */
export function stateText({ kind, words }: Span): string {
  if (words === "") return STATE_NAMES[kind];
  return kind === "electing" || kind === "view" ? words : `${STATE_NAMES[kind]}, ${words}`;
}

/** The name of the page color for each kind of state. */
export const STATE_COLOURS: Readonly<Record<Span["kind"], string>> = {
  inside: "--delivered",
  waiting: "--gold",
  leading: "--accent",
  electing: "--ink-soft",
  preparing: "--ink-soft",
  proposing: "--accent",
  view: "--ink-6",
  changing: "--gold",
};

export const STATE_PX = 13;

/** The minimum width of a state. Neighboring states that are narrower are merged. */
const LEAST_PX = 1;

export function placeStates(states: readonly StateSpan[], frame: Frame): PlacedState[] {
  const placed: PlacedState[] = [];
  const last = new Map<string, number>();
  for (const { node, from, to, kind, words } of states) {
    const [begin, end, y] = [xOf(from, frame), xOf(to, frame), yOf(node, frame)];
    if (y === null || end < 0 || begin > frame.width) continue;
    const [x1, x2] = [Math.max(0, begin), Math.min(frame.width, Math.max(end, begin + LEAST_PX))];
    const before = last.get(`${node} ${kind}`);
    const known = before === undefined ? undefined : placed[before];
    if (known !== undefined && before !== undefined && x1 - known.x2 < LEAST_PX && x2 - x1 <= LEAST_PX) {
      placed[before] = { ...known, x2 };
      continue;
    }
    last.set(`${node} ${kind}`, placed.length);
    placed.push({ key: `${node} ${from}`, kind, words, x1, x2, y, beginsHere: begin >= 0 });
  }
  return placed;
}
