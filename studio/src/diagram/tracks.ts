/** Places a node's held-back messages below its life line, from their receipt to their delivery. */
import type { NodeId } from "../../../src/core/protocol.ts";
import type { Track } from "../../../src/trace/diagram/diagram.ts";
import type { Life } from "../history/life.ts";
import { durationText } from "./axis.ts";
import { type Frame, xOf, yOf } from "./frame.ts";

/** One held-back message, or the number of additional ones. */
export interface PlacedTrack {
  readonly key: string;
  readonly node: NodeId;
  readonly x1: number;
  readonly x2: number;
  /** The upper edge. */
  readonly y: number;
  /** The y coordinate of the life line. */
  readonly lifeY: number;
  /** The x coordinates of its ends at the life line, if they are in the frame. */
  readonly ends: readonly number[];
  /** The label. Empty if it does not fit. */
  readonly text: string;
  readonly isSurplus: boolean;
  readonly title: string;
}

export const TRACK_PX = 8;
const PITCH_PX = 9.5;
const BELOW_LINE_PX = 5;
const CHARACTER_PX = 5.4;
/** The maximum number of tracks. More would make scrolling slow, so only the latest ones are drawn. */
const MAX_TRACKS = 400;
/** The minimum width of a visible track. */
const LEAST_PX = 1;

type Lives = ReadonlyMap<NodeId, { readonly holdBack: Pick<Life["holdBack"], "tracks"> }>;

export function placeTracks(lives: Lives, frame: Frame): PlacedTrack[] {
  const visible = frame.nodes
    .flatMap((node) => lives.get(node)?.holdBack.tracks() ?? [])
    .map((track) => ({ track, from: track.from ?? -Infinity, to: track.to ?? Infinity }))
    .filter(({ from, to }) => {
      const [x1, x2] = [xOf(from, frame), xOf(to, frame)];
      return x2 >= 0 && x1 <= frame.width && x2 - x1 >= LEAST_PX;
    });
  const latest = visible.length > MAX_TRACKS ? visible.toSorted((a, b) => a.to - b.to).slice(-MAX_TRACKS) : visible;
  return latest.map(({ track }) => placed(track, frame));
}

function placed({ node, text, row, from, to, isSurplus }: Track, frame: Frame): PlacedTrack {
  const lifeY = yOf(node, frame) ?? 0;
  const begin = from === null ? -Infinity : xOf(from, frame);
  const end = to === null ? Infinity : xOf(to, frame);
  const [x1, x2] = [Math.max(begin, 0), Math.min(end, frame.width)];
  const what = isSurplus ? `up to ${text.slice(1)} more` : text;
  const duration = from === null || to === null ? "" : ` for ${durationText(to - from)}`;
  return {
    key: `${node} ${text} ${from} ${row}`,
    node,
    x1,
    x2,
    y: lifeY + BELOW_LINE_PX + row * PITCH_PX,
    lifeY,
    ends: [begin, end].filter((x) => x >= 0 && x <= frame.width),
    text: trackText(text, x2 - x1),
    isSurplus,
    title: `${what} held back at node ${node}${duration}`,
  };
}

const trackText = (text: string, width: number): string => (width >= text.length * CHARACTER_PX + 6 ? text : "");
