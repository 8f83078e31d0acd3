/** Spans of time in which the network was split, or lost or delayed messages. */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import { networkInWords } from "../history/network-news.ts";
import { type Frame, xOf } from "./frame.ts";

export interface PlacedSpan {
  readonly key: number;
  readonly x1: number;
  readonly x2: number;
  /** As much of the title as has room. */
  readonly text: string;
  readonly title: string;
}

/** The mean width of a letter. */
const CHARACTER_PX = 6.4;
const PADDING_PX = 10;
const LEAST_CHARACTERS = 4;

/** From a place of the axis on the network was like that; without words nothing is wrong with it. */
export interface NetworkWords {
  readonly since: number;
  readonly words: string;
}

export function placeSpans(networks: readonly (NetworkPeriod | NetworkWords)[], frame: Frame): PlacedSpan[] {
  return networks.flatMap((period, index): PlacedSpan[] => {
    const until = networks[index + 1]?.since ?? Infinity;
    const { since } = period;
    const title = "words" in period ? period.words : networkInWords(period.network, frame.nodes);
    const [x1, x2] = [Math.max(0, xOf(since, frame)), Math.min(frame.width, xOf(until, frame))];
    if (title === "" || x2 <= x1) return [];
    return [{ key: since, x1, x2, text: fitting(title, x2 - x1), title }];
  });
}

function fitting(title: string, width: number): string {
  const room = Math.floor((width - PADDING_PX) / CHARACTER_PX);
  if (title.length <= room) return title;
  return room < LEAST_CHARACTERS ? "" : `${title.slice(0, room - 1)}…`;
}
