import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import { Pressure } from "./channel-pressure.ts";

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] }),
);
afterEach(() => void vi.useRealTimers());

function played(): { pressure: Pressure; said: boolean[]; reliefs: () => number } {
  const said: boolean[] = [];
  let reliefs = 0;
  const pressure = new Pressure(
    realPlatform,
    (isFull) => void said.push(isFull),
    () => {
      reliefs += 1;
    },
  );
  return { pressure, said, reliefs: () => reliefs };
}

describe("a member whose readers cannot keep up", () => {
  test("says so at once, and again while it lasts, and that it is over", () => {
    const { pressure, said, reliefs } = played();
    pressure.own = false;
    pressure.own = true;
    pressure.own = true;
    vi.advanceTimersByTime(600);
    expect([pressure.own, reliefs()]).toEqual([true, 0]);
    pressure.own = false;
    vi.advanceTimersByTime(600);
    expect(said).toEqual([true, true, true, false]);
    expect([pressure.own, reliefs()]).toEqual([false, 1]); // What is sent here has waited for it, too.
  });

  test("is waited for until it says that it is over", () => {
    const { pressure, reliefs } = played();
    pressure.heard(2, true);
    expect(pressure.slowAmong([1, 2, 3])).toEqual([2]);
    expect(pressure.slowAmong([1, 3])).toEqual([]); // It is not in the view.
    pressure.heard(2, false);
    expect(pressure.slowAmong([1, 2, 3])).toEqual([]);
    expect(reliefs()).toBe(1);
    pressure.close();
  });

  test("is not waited for once it is not heard of any more", () => {
    const { pressure, reliefs } = played();
    pressure.heard(2, true);
    vi.advanceTimersByTime(900);
    pressure.heard(2, true);
    vi.advanceTimersByTime(900);
    expect(pressure.slowAmong([2])).toEqual([2]);
    vi.advanceTimersByTime(600);
    expect(pressure.slowAmong([2])).toEqual([]);
    expect(reliefs()).toBeGreaterThan(0);
    pressure.close();
  });
});
