import { describe, expect, test } from "vitest";
import { Pace } from "./pace.ts";

/** Returns the frames, out of those at these times, that draw the picture. */
function drawnAt(frames: readonly number[]): number[] {
  const pace = new Pace();
  return frames.filter((now) => {
    if (!pace.allows(now)) return false;
    pace.drew(now);
    return true;
  });
}

describe("a picture during a drag", () => {
  test("is drawn in each frame as long as frames are on time", () => {
    const frames = [0, 17, 33, 50, 67];
    expect(drawnAt(frames)).toEqual(frames);
  });

  test("is not redrawn for a while after a late frame, and then drawn again", () => {
    const late = [0, 50, ...Array.from({ length: 60 }, (_, index) => 67 + index * 17)];
    const drawn = drawnAt(late);
    expect(drawn[0]).toBe(0);
    // 50 ms late, so drawing pauses for half a second.
    expect(drawn[1]).toBeGreaterThanOrEqual(550);
    expect(drawn[1]).toBeLessThan(570);
    expect(drawn[2]).toBe((drawn[1] ?? 0) + 17);
  });
});
