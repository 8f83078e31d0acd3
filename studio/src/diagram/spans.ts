/** Spans of time in which something was wrong with the network: it was split, lost messages or delayed them. Each fault is one. */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import { networkInWords } from "../history/network-news.ts";
import { type Frame, xOf } from "./frame.ts";

/** `cut`: links through which nothing passes; `loss`: messages are dropped, or come twice; `delay`: they come late. */
export type FaultKind = "cut" | "loss" | "delay";

export interface PlacedSpan {
  readonly key: string;
  readonly kind: FaultKind;
  readonly x1: number;
  readonly x2: number;
  /** Of its upper edge: faults at the same time lie below each other. */
  readonly y: number;
  /** As much of the title as has room. */
  readonly text: string;
  readonly title: string;
}

export const LANE_PX = 15;
/** What else there is at the same time is told in the lowest lane only. */
const MOST_LANES = 3;

/** Of the room above the first row, where a span begins, and how much of it there is at least. */
const [BELOW_TOP_PX, LEAST_TOP_PX] = [4, 14];
/** The mean width of a letter. */
const CHARACTER_PX = 6.4;
const PADDING_PX = 10;
const LEAST_CHARACTERS = 4;

/** From a place of the axis on the network was like that; without words nothing is wrong with it. */
export interface NetworkWords {
  readonly since: number;
  readonly words: string;
}

type Networks = readonly (NetworkPeriod | NetworkWords)[];

interface Fault {
  readonly title: string;
  readonly since: number;
  until: number;
  readonly lane: number;
}

export function placeSpans(networks: Networks, frame: Frame): PlacedSpan[] {
  const faults = faultsIn(networks, frame.nodes);
  const lanes = Math.max(0, ...faults.map(({ lane }) => lane));
  // As many as have room stand above where a single one does.
  const first = frame.top - BELOW_TOP_PX - LANE_PX * Math.min(lanes, Math.floor((frame.top - LEAST_TOP_PX) / LANE_PX));
  return faults.flatMap(({ title, since, until, lane }): PlacedSpan[] => {
    const [x1, x2] = [Math.max(0, xOf(since, frame)), Math.min(frame.width, xOf(until, frame))];
    if (x2 <= x1) return [];
    const y = first + lane * LANE_PX;
    return [{ key: `${since} ${title}`, kind: kindOf(title), x1, x2, y, text: fitting(title, x2 - x1), title }];
  });
}

/** How many faults there are at the same time, at most. */
export const lanesOf = (networks: Networks, nodes: Frame["nodes"]): number =>
  Math.max(0, ...faultsIn(networks, nodes).map(({ lane }) => lane + 1));

/** Each as long as it lasts, whatever else comes and goes meanwhile. */
function faultsIn(networks: Networks, nodes: Frame["nodes"]): readonly Fault[] {
  const all: Fault[] = [];
  let going: Fault[] = [];
  for (const [index, period] of networks.entries()) {
    const { since } = period;
    const words = "words" in period ? period.words : networkInWords(period.network, nodes);
    const titles = words.split("; ").filter((title) => title !== "");
    going = going.filter(({ title }) => titles.includes(title));
    for (const title of titles) {
      if (going.some((fault) => fault.title === title)) continue;
      const lane = [0, 1, 2].find((free) => going.every((fault) => fault.lane !== free)) ?? MOST_LANES - 1;
      const fault = { title, since, until: since, lane };
      going.push(fault);
      all.push(fault);
    }
    for (const fault of going) fault.until = networks[index + 1]?.since ?? Number.POSITIVE_INFINITY;
  }
  return all;
}

function kindOf(title: string): FaultKind {
  if (/dropped|twice|overtake/.test(title)) return "loss";
  return /of delay$/.test(title) ? "delay" : "cut";
}

/** As much of a fault as has room. */
function fitting(title: string, width: number): string {
  const room = Math.floor((width - PADDING_PX) / CHARACTER_PX);
  if (title.length <= room) return title;
  return room < LEAST_CHARACTERS ? "" : `${title.slice(0, room - 1)}…`;
}
