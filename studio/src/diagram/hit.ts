/** What lies under the pointer: a mark, else the nearest arrow. */
import type { Arrow, Message, Picture, PlacedMark, Point } from "./picture.ts";

const MARK_PX = 9;
const ARROW_PX = 6;

export function hit<M extends Message>({ marks, arrows }: Picture<M>, at: Point): Arrow<M> | PlacedMark | null {
  let [best, least] = [null as Arrow<M> | PlacedMark | null, Number.POSITIVE_INFINITY];
  for (const mark of marks) {
    const distance = Math.hypot(mark.x - at.x, mark.y - 5 - at.y);
    if (distance <= MARK_PX && distance < least) [best, least] = [mark, distance];
  }
  if (best !== null) return best;
  for (const arrow of arrows) {
    const distance = distanceTo(arrow, at);
    if (distance <= ARROW_PX && distance < least) [best, least] = [arrow, distance];
  }
  return best;
}

function distanceTo({ start, end }: Pick<Arrow, "start" | "end">, { x, y }: Point): number {
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const length = dx * dx + dy * dy;
  const share = length === 0 ? 0 : Math.min(1, Math.max(0, ((x - start.x) * dx + (y - start.y) * dy) / length));
  return Math.hypot(start.x + share * dx - x, start.y + share * dy - y);
}
