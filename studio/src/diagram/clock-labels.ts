/** Vector clocks beside the life lines, at the ends of messages: one for each step, as far as they have room. */
import type { NodeId } from "../../../src/core/protocol.ts";
import { type Frame, yOf } from "./frame.ts";
import type { Arrow, ClockLabel, ClockOf } from "./picture.ts";

const CHARACTER_PX = 5.8;
const GAP_PX = 8;
const BELOW_PX = 15;

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
    const width = clock.text.length * CHARACTER_PX;
    if (x + 3 + width > frame.width) return [];
    free.set(node, x + width + GAP_PX);
    return [{ key: `${node} ${clock.key}`, x: x + 3, y: y + BELOW_PX, text: clock.text }];
  });
}
