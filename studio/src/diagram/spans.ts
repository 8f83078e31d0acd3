/** Spans of time in which the network was split, or lost or delayed messages. */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import { networkInWords } from "../history/network-news.ts";
import { type Frame, xOf } from "./frame.ts";
import { CHARACTER_PX } from "./labels.ts";

export interface PlacedSpan {
  readonly key: number;
  readonly x1: number;
  readonly x2: number;
  /** As much of the title as has room. */
  readonly text: string;
  readonly title: string;
}

const PADDING_PX = 10;
const LEAST_CHARACTERS = 4;

export function placeSpans(networks: readonly NetworkPeriod[], frame: Frame): PlacedSpan[] {
  return networks.flatMap(({ since, network }, index): PlacedSpan[] => {
    const until = networks[index + 1]?.since ?? Infinity;
    const title = networkInWords(network, frame.nodes);
    if (title === "" || until <= frame.from || since >= frame.to) return [];
    const [x1, x2] = [Math.max(0, xOf(since, frame)), Math.min(frame.width, xOf(until, frame))];
    return [{ key: since, x1, x2, text: fitting(title, x2 - x1), title }];
  });
}

function fitting(title: string, width: number): string {
  const room = Math.floor((width - PADDING_PX) / CHARACTER_PX);
  if (title.length <= room) return title;
  return room < LEAST_CHARACTERS ? "" : `${title.slice(0, room - 1)}…`;
}
