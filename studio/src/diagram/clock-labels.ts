/** Vector clocks beside the life lines, at the ends of messages: one for each step, as far as they have room. */
import type { VectorClock } from "../../../src/core/clocks.ts";
import type { NodeId } from "../../../src/core/protocol.ts";
import { clockText } from "../../../src/trace/diagram/diagram.ts";
import { type Frame, yOf } from "./frame.ts";
import type { Arrow } from "./layout.ts";

export interface ClockLabel {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

const CHARACTER_PX = 5.6;
const GAP_PX = 8;
const BELOW_PX = 14;

export function placeClocks(
  arrows: readonly Arrow[],
  clockAt: (node: NodeId, step: number) => VectorClock,
  frame: Frame,
): ClockLabel[] {
  const ends = arrows
    .flatMap(({ message: { from, to, sentStep, receivedStep }, start, end, fate }) => [
      ...(sentStep === null ? [] : [{ node: from, step: sentStep, x: start.x }]),
      ...(receivedStep === null || fate === "lost" ? [] : [{ node: to, step: receivedStep, x: end.x }]),
    ])
    .sort((a, b) => a.x - b.x);
  const free = new Map<NodeId, number>();
  return ends.flatMap(({ node, step, x }): ClockLabel[] => {
    const y = yOf(node, frame);
    if (y === null || x < (free.get(node) ?? -Infinity)) return [];
    const text = clockText(clockAt(node, step), frame.nodes);
    free.set(node, x + text.length * CHARACTER_PX + GAP_PX);
    return [{ key: `${node} ${step}`, x: x + 3, y: y + BELOW_PX, text }];
  });
}
