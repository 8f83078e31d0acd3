/** Where the tracks of what is held back lie, and where on them there is room for a message's id. */
import type { NodeId } from "../../core/protocol.ts";
import { TRACK_PITCH, type Track } from "../diagram/held-back.ts";
import { freePlaces, type Surroundings } from "./arrow-labels.ts";
import { type Box, uprightBox } from "./boxes.ts";
import { textWidth } from "./text-width.ts";
import type { Timeline } from "./timeline.ts";

export interface PlacedTrack {
  readonly track: Track;
  readonly x1: number;
  readonly x2: number;
  /** Of the life line that it hangs from. */
  readonly lifeY: number;
  readonly top: number;
  /** Where its text stands: once in each band, if there is room. */
  readonly texts: readonly Box[];
}

export const TRACK_PX = 9;
export const TRACK_TEXT_PX = 8.5;
const BELOW_LINE_PX = 7;
const INSET_PX = 3;
/** How far apart two places for a text are. */
const STRIDE_PX = 8;
const MOST_PLACES = 20;

type Bare = Omit<PlacedTrack, "texts">;

export function placeTracks(
  { tracks, steps }: Pick<Timeline, "tracks" | "steps">,
  yOf: (node: NodeId) => number,
  surroundings: Surroundings,
): PlacedTrack[] {
  const { edges, boxes } = surroundings;
  const [left, right] = [edges[0] ?? 0, edges.at(-1) ?? 0];
  const bare = tracks.map((track): Bare => {
    const lifeY = yOf(track.node);
    const x1 = track.from === null ? left : (steps[track.from]?.x ?? left);
    const x2 = track.to === null ? right : (steps[track.to]?.x ?? right);
    return { track, x1, x2, lifeY, top: lifeY + BELOW_LINE_PX + track.row * TRACK_PITCH };
  });
  const around = { ...surroundings, boxes: [...boxes, ...bare.flatMap(stemBoxes)] };
  const choices = bare.map((each) => textPlaces(each, edges));
  const found = freePlaces(around, choices.flat());
  const bands = edges.length - 1;
  return bare.map((each, index) => {
    const texts = found.slice(index * bands, (index + 1) * bands).filter((box) => box !== null);
    return { ...each, texts };
  });
}

/** The strokes by which it hangs may cross the tracks above. */
function stemBoxes({ track, x1, x2, lifeY, top }: Bare): Box[] {
  const ends = [...(track.from === null ? [] : [x1]), ...(track.to === null ? [] : [x2])];
  return ends.map((x) => uprightBox(x - 1, lifeY, 2, top - lifeY));
}

/** For each band, from the beginning on. */
function textPlaces({ track, x1, x2, top }: Bare, edges: readonly number[]): Box[][] {
  const width = textWidth(track.text, TRACK_TEXT_PX);
  return edges.slice(1).map((edge, band) => {
    const from = Math.max(x1, edges[band] ?? x1);
    const room = Math.min(x2, edge) - from - width - 2 * INSET_PX;
    const count = Math.min(MOST_PLACES, Math.floor(room / STRIDE_PX) + 1);
    return Array.from({ length: Math.max(0, count) }, (_, place) =>
      uprightBox(from + INSET_PX + place * STRIDE_PX, top + 1, width, TRACK_PX - 2),
    );
  });
}

/** What a track covers. */
export const trackBox = ({ x1, x2, top }: PlacedTrack): Box => uprightBox(x1, top, x2 - x1, TRACK_PX);
