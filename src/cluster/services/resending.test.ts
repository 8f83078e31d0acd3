import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import { Resending } from "./resending.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function played() {
  const taken: string[] = [];
  const cut = new Set<number>();
  const overflows: number[] = [];
  const resending = new Resending<string>({
    platform: realPlatform,
    send(to, message) {
      if (cut.has(to)) return { id: () => "", lost: "cut" };
      taken.push(`${message.slice(0, 5)} to ${to}`);
      return { id: () => "", lost: null };
    },
    onOverflow: (to) => void overflows.push(to),
  });
  return { resending, taken, cut, overflows };
}

test("sends refused messages again in order, with later ones behind them; other members do not wait", () => {
  const { resending, taken, cut } = played();
  cut.add(2);
  for (const message of ["a", "b"]) resending.insist(2, message);
  resending.insist(3, "a");
  vi.advanceTimersByTime(500);
  expect(taken).toEqual(["a to 3"]);
  cut.clear();
  resending.insist(2, "c");
  vi.advanceTimersByTime(50);
  expect(taken).toEqual(["a to 3", "a to 2", "b to 2", "c to 2"]);
  expect(vi.getTimerCount()).toBe(0);
});

test.each([
  ["10,000 messages", 0, 10_000],
  ["16 MiB", 1024 * 1024 - 10, 16],
])("at most %s wait for a member: the oldest are dropped, and senders must wait before", (_, bytes, most) => {
  const { resending, taken, cut, overflows } = played();
  const insist = (number: number): unknown => resending.insist(2, `${10_000 + number}`.padEnd(bytes));
  cut.add(2);
  for (let number = 0; number < most / 2; number++) insist(number);
  expect(resending.isFull(2)).toBe(false);
  insist(most / 2);
  expect([resending.isFull(2), resending.isFull(3)]).toEqual([true, false]);
  for (let number = most / 2 + 1; number < most + 3; number++) insist(number);
  expect(overflows).toEqual([2, 2, 2]);
  cut.clear();
  vi.advanceTimersByTime(50);
  expect(resending.isFull(2)).toBe(false);
  expect(taken).toHaveLength(most);
  expect(taken[0]).toBe("10003 to 2");
});

test("sends nothing after it is closed", () => {
  const { resending, taken, cut } = played();
  cut.add(2);
  resending.insist(2, "a");
  resending.close();
  cut.clear();
  vi.advanceTimersByTime(500);
  expect(taken).toEqual([]);
});
