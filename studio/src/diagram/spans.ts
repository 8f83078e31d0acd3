/** Places the periods of network faults (cuts, losses and delays). Each fault becomes one span. */
import type { NetworkPeriod } from "../../../src/cluster/feed.ts";
import { networkInWords } from "../history/network-news.ts";
import { type Frame, xOf } from "./frame.ts";

/** `cut`: no messages pass the link. `loss`: messages are dropped or duplicated. `delay`: messages are delayed. */
export type FaultKind = "cut" | "loss" | "delay";

export interface PlacedSpan {
  readonly key: string;
  readonly kind: FaultKind;
  readonly x1: number;
  readonly x2: number;
  /** The upper edge. Concurrent faults are stacked. */
  readonly y: number;
  /** As much of the title as fits. */
  readonly text: string;
  readonly title: string;
}

export const LANE_PX = 15;
/** The maximum number of lanes. Any further concurrent faults share the lowest lane. */
const MOST_LANES = 3;

/** The distance between a span and the first row, and the minimum space above it. */
const [BELOW_TOP_PX, LEAST_TOP_PX] = [4, 14];
/** The mean width of a letter. */
const CHARACTER_PX = 6.4;
const PADDING_PX = 10;
const LEAST_CHARACTERS = 4;

/** The condition of the network from a position on the axis onward. Empty words: no faults. */
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
  // Use as many lanes as fit, stacking upward from the position of a single lane.
  const first = frame.top - BELOW_TOP_PX - LANE_PX * Math.min(lanes, Math.floor((frame.top - LEAST_TOP_PX) / LANE_PX));
  return faults.flatMap(({ title, since, until, lane }): PlacedSpan[] => {
    const [x1, x2] = [Math.max(0, xOf(since, frame)), Math.min(frame.width, xOf(until, frame))];
    if (x2 <= x1) return [];
    const y = first + lane * LANE_PX;
    return [{ key: `${since} ${title}`, kind: kindOf(title), x1, x2, y, text: fitting(title, x2 - x1), title }];
  });
}

/** Returns the maximum number of concurrent faults. */
export const lanesOf = (networks: Networks, nodes: Frame["nodes"]): number =>
  Math.max(0, ...faultsIn(networks, nodes).map(({ lane }) => lane + 1));

/** Returns one span per fault, regardless of other faults. */
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

function fitting(title: string, width: number): string {
  const room = Math.floor((width - PADDING_PX) / CHARACTER_PX);
  if (title.length <= room) return title;
  return room < LEAST_CHARACTERS ? "" : `${title.slice(0, room - 1)}…`;
}
