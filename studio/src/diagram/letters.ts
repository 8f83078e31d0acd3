/** Places as many of a picture's labels as fit: lasting states first, then events, then names of messages. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { type Frame, yOf } from "./frame.ts";
import { type Letter, placeAlong, placeBeside, Room, widthOf } from "./lettering.ts";
import type { Arrow, ClockLabel, ClockOf, Picture } from "./picture.ts";
import { STATE_COLOURS, stateText } from "./states.ts";

type Bare = Omit<Picture, "letters">;

/** The maximum number of arrows whose names are shown. More names would be unreadable. */
const MAX_NAMED = 220;
const MARK_ABOVE_PX = 14;

export function placeLetters(picture: Bare, inkOf: (name: string) => string): Letter[] {
  const { frame, height, clocks } = picture;
  const room = new Room(frame.width, height);
  takeGround(room, picture);
  const clockLetters = clocks.map(({ key, x, y, text }): Letter => {
    room.take(x, y - 10, widthOf(text, "clock"), 13);
    return { key: `clock ${key}`, text, x, y, radians: 0, style: "clock", colour: "--accent", of: x };
  });
  return [
    ...clockLetters,
    ...stateLetters(room, picture),
    ...markLetters(room, picture),
    ...roleLetters(room, picture),
    ...arrowLetters(room, picture, inkOf),
  ];
}

function takeGround(room: Room, { frame, lines, tracks, marks, arrows, spans, height }: Bare): void {
  for (const { y, x1, x2 } of lines) room.take(x1, y - 2, x2 - x1, 4);
  for (const { x1, x2, y } of tracks) room.take(x1, y, x2 - x1, 9);
  for (const { x, y } of marks) room.take(x - 6, y - MARK_ABOVE_PX + 2, 13, MARK_ABOVE_PX + 3);
  for (const { x1, y, text } of spans) room.take(x1, y + 2, text.length * 6.4 + 8, 14);
  room.take(0, height - 34, frame.width, 34);
  for (const { start, end } of arrows) {
    room.pass(start.x, start.y, end.x, end.y);
    room.take(end.x - 5, end.y - 4, 9, 8);
  }
}

/** Places the labels of lasting states, either where they begin or at the edge. */
function stateLetters(room: Room, { states }: Bare): Letter[] {
  return states.flatMap(({ key, kind, words, x1, x2, y }): Letter[] => {
    const text = stateText({ kind, words });
    if (x2 - x1 < Math.min(widthOf(text, "state"), 26)) return [];
    const colour = STATE_COLOURS[kind];
    const letter = { key: `state ${key}`, text, style: "state" as const, colour, of: x1 };
    const [left, baseline, width] = [x1 + 6, y + 17, widthOf(text, "state")];
    if (!room.isFree(left, baseline - 9, width, 11)) return [];
    room.take(left, baseline - 9, width + 4, 11);
    return [{ ...letter, x: left, y: baseline, radians: 0 }];
  });
}

function markLetters(room: Room, { marks }: Bare): Letter[] {
  const inTurn = marks.toSorted((a, b) => b.weight - a.weight || a.x - b.x);
  return inTurn.flatMap(({ key, label, shape, x, y }): Letter[] => {
    if (label === "") return [];
    const style = shape === "delivery" ? "bold" : "plain";
    const colour = shape === "crash" ? "--danger" : shape === "delivery" ? "--delivered" : "--ink";
    const placed = placeBeside(room, { key: `mark ${key}`, text: label, style, colour, of: x }, x + 11, y);
    return placed === null ? [] : [placed];
  });
}

function roleLetters(room: Room, { lines, tracks, states, clocks }: Bare): Letter[] {
  if (clocks.length > 0) return [];
  return lines.flatMap(({ key, x1, y, condition, role }): Letter[] => {
    if (role === null) return [];
    const text = condition === "paused" ? "paused" : role;
    const [width, end] = [widthOf(text, "role"), x1 + widthOf(text, "role") + 16];
    const isTaken =
      tracks.some((track) => track.lifeY === y && track.x1 < end && track.x2 > x1) ||
      states.some((state) => state.y === y && state.x1 < end && state.x2 > x1);
    if (isTaken || !room.isFree(x1 + 7, y + 6, width, 13)) return [];
    room.take(x1 + 7, y + 6, width + 4, 13);
    return [
      { key: `role ${key}`, text, x: x1 + 7, y: y + 17, radians: 0, style: "role", colour: "--ink-soft", of: x1 },
    ];
  });
}

/** Places the names of messages. A message that one step sends to several nodes is labeled once. */
function arrowLetters(room: Room, { arrows, crowd }: Bare, inkOf: (name: string) => string): Letter[] {
  if (crowd !== null || arrows.length > MAX_NAMED) return [];
  const groups = new Map<string, typeof arrows>();
  for (const arrow of arrows) {
    const { from, label, name } = arrow.message;
    const key = `${from} ${Math.round(arrow.start.x / 16)} ${label ?? name.short}`;
    groups.set(key, [...(groups.get(key) ?? []), arrow]);
  }
  return [...groups].flatMap(([key, group]): Letter[] => {
    const { label, name } = (group[0] as (typeof arrows)[number]).message;
    const letter = {
      key: `arrow ${key}`,
      text: label ?? name.short,
      style: "arrow" as const,
      colour: inkOf(name.full),
    };
    for (const { start, end } of group.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
      const line = { x1: start.x, y1: start.y, x2: end.x, y2: end.y };
      const placed = placeAlong(room, { ...letter, of: start.x }, line);
      if (placed !== null) return [placed];
    }
    return [];
  });
}

const lengthOf = ({ start, end }: Picture["arrows"][number]): number => Math.hypot(end.x - start.x, end.y - start.y);

const CLOCK_CHARACTER_PX = 5.8;
const CLOCK_GAP_PX = 8;
const CLOCK_BELOW_PX = 15;

/** Places vector clocks next to the life lines at the ends of messages, one per step, as long as they fit. */
export function placeClocks(arrows: readonly Arrow[], clockOf: ClockOf, frame: Frame): ClockLabel[] {
  const ends = arrows
    .flatMap(({ message, start, end, fate }) => [
      ...(message.sentAt === null ? [] : [{ node: message.from, clock: clockOf(message, "sent"), x: start.x }]),
      ...(message.receivedAt === null || fate === "lost"
        ? []
        : [{ node: message.to, clock: clockOf(message, "received"), x: end.x }]),
    ])
    .sort((a, b) => a.x - b.x);
  const free = new Map<NodeId, number>();
  return ends.flatMap(({ node, clock, x }): ClockLabel[] => {
    const y = yOf(node, frame);
    if (y === null || clock === null || x < (free.get(node) ?? -Infinity)) return [];
    const width = clock.text.length * CLOCK_CHARACTER_PX;
    if (x + 3 + width > frame.width) return [];
    free.set(node, x + width + CLOCK_GAP_PX);
    return [{ key: `${node} ${clock.key}`, x: x + 3, y: y + CLOCK_BELOW_PX, text: clock.text }];
  });
}
