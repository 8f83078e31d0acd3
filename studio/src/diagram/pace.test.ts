import { describe, expect, test } from "vitest";
import { Pace } from "./pace.ts";

/** In which of the frames at these times the picture is drawn. */
function drawnAt(frames: readonly number[]): number[] {
  const pace = new Pace();
  return frames.filter((now) => {
    if (!pace.allows(now)) return false;
    pace.drew(now);
    return true;
  });
}

describe("a picture that hands move", () => {
  test("is drawn in each frame as long as frames are in time", () => {
    const frames = [0, 17, 33, 50, 67];
    expect(drawnAt(frames)).toEqual(frames);
  });

  test("is left alone for a while after a frame that came late, and then drawn again", () => {
    const late = [0, 50, ...Array.from({ length: 60 }, (_, index) => 67 + index * 17)];
    const drawn = drawnAt(late);
    expect(drawn[0]).toBe(0);
    // 50 ms late, so half a second of rest.
    expect(drawn[1]).toBeGreaterThanOrEqual(550);
    expect(drawn[1]).toBeLessThan(570);
    expect(drawn[2]).toBe((drawn[1] ?? 0) + 17);
  });
});
