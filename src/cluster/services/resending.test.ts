import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import { Resending } from "./resending.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** What must not be overtaken. */
const LEADER = 9;

function played(bytes = 1) {
  const taken: string[] = [];
  const cut = new Set<number>();
  const overflows: number[] = [];
  const resending = new Resending<number>({
    platform: realPlatform,
    send(to, message) {
      if (cut.has(to)) return { id: () => "", lost: "cut" };
      taken.push(`${message} to ${to}`);
      return { id: () => "", lost: null };
    },
    bytesOf: () => bytes,
    leads: (message) => message === LEADER,
    onOverflow: (to) => void overflows.push(to),
  });
  return { resending, taken, cut, overflows };
}

test("what a link does not take is sent again until it does, in order; other members do not wait for it", () => {
  const { resending, taken, cut } = played();
  cut.add(2);
  for (const message of [1, 2]) resending.insist(2, message);
  resending.insist(3, 1);
  vi.advanceTimersByTime(500);
  expect(taken).toEqual(["1 to 3"]);
  cut.delete(2);
  resending.insist(2, 3); // It does not overtake.
  vi.advanceTimersByTime(50);
  expect(taken).toEqual(["1 to 3", "1 to 2", "2 to 2", "3 to 2"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("for a member that cannot be reached the last 10,000 are kept, and it is said that there were more", () => {
  const { resending, taken, cut, overflows } = played();
  cut.add(2);
  for (let message = 0; message < 10_003; message++) resending.insist(2, message);
  expect(overflows).toEqual([2, 2, 2]);
  cut.clear();
  vi.advanceTimersByTime(50);
  expect(taken).toHaveLength(10_000);
  expect(taken.at(-1)).toBe("10002 to 2");
});

test("of large messages fewer are kept: 16 MiB", () => {
  const { resending, taken, cut, overflows } = played(1024 * 1024);
  cut.add(2);
  for (let message = 0; message < 18; message++) resending.insist(2, message);
  expect(overflows).toEqual([2, 2]);
  cut.clear();
  vi.advanceTimersByTime(50);
  expect(taken).toHaveLength(16);
  expect(taken[0]).toBe("2 to 2");
});

test("a sender that can wait is asked to before anything is dropped, until the link takes messages again", () => {
  const { resending, cut } = played(1024 * 1024);
  cut.add(2);
  for (let message = 0; message < 8; message++) resending.insist(2, message);
  expect(resending.isFull(2)).toBe(false);
  resending.insist(2, 8);
  expect([resending.isFull(2), resending.isFull(3)]).toEqual([true, false]);
  cut.clear();
  vi.advanceTimersByTime(50);
  expect(resending.isFull(2)).toBe(false);
});

test("what is tried once overtakes what waits, and not what leads", () => {
  const { resending, taken, cut } = played();
  const waiting = (to: number, message: number): void => {
    cut.add(to);
    resending.insist(to, message);
    cut.clear();
  };
  waiting(2, 1);
  waiting(3, LEADER);
  waiting(3, 1);
  const lost = [2, 3].map((to) => resending.attempt(to, 5).lost);
  expect([lost, taken]).toEqual([[null, "down"], ["5 to 2"]]);
  vi.advanceTimersByTime(50);
  expect(resending.attempt(3, 5).lost).toBeNull();
  expect(taken).toEqual(["5 to 2", "1 to 2", `${LEADER} to 3`, "1 to 3", "5 to 3"]);
});

test("at the end nothing is sent any more", () => {
  const { resending, taken, cut } = played();
  cut.add(2);
  resending.insist(2, 1);
  resending.close();
  cut.clear();
  vi.advanceTimersByTime(500);
  expect(taken).toEqual([]);
});
