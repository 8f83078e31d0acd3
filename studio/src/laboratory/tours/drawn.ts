/** What is written in a picture, in the language of the tour that shows it; what the algorithm calls its own stays. */
import type { Message, Picture } from "../../diagram/picture.ts";
import { fitting } from "../../diagram/spans.ts";
import { trackText } from "../../diagram/tracks.ts";
import type { Say } from "./saying.ts";

export function spoken<M extends Message>(picture: Picture<M>, say: Say): Picture<M> {
  return {
    ...picture,
    spans: picture.spans.map((span) => {
      const title = faultIn(span.title, say);
      return { ...span, title, text: fitting(title, span.x2 - span.x1) };
    }),
    tracks: picture.tracks.map((track) => ({ ...track, text: trackText(say(track.text), track.x2 - track.x1) })),
    axis: { ...picture.axis, ticks: picture.axis.ticks.map((tick) => ({ ...tick, text: say(tick.text) })) },
  };
}

/** One fault of links, such as `0 – 1: 20 % of the messages dropped, 100 ms of delay`. */
export function faultIn(title: string, say: Say): string {
  const [, ends, conditions] = /^([\d, –→]+: )(.*)$/.exec(title) ?? [];
  const said = (text: string): string => text.split(", ").map(say).join(", ");
  return ends === undefined || conditions === undefined ? said(title) : ends + said(conditions);
}

/** What is written at a mark: `timeout: answer · deferring`, `link to 1: 100 ms of delay`. */
export const markIn = (label: string, say: Say): string =>
  label
    .split(SEPARATOR)
    .map((part) => {
      const [, link, conditions] = /^(link to \d+): (.*)$/.exec(part) ?? [];
      return link === undefined || conditions === undefined ? say(part) : `${say(link)}: ${faultIn(conditions, say)}`;
    })
    .join(SEPARATOR);

const SEPARATOR = " · ";

/** What is written at a place of the diagram. */
export function letterIn(text: string, style: string, say: Say): string {
  if (style === "arrow" || style === "clock") return text;
  if (style === "state") return text.split(", ").map(say).join(", ");
  return style === "role" ? say(text) : markIn(text, say);
}
