import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { realPlatform } from "../platform/real.ts";
import { DelayLine } from "./delay-line.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function delayed() {
  const released: string[] = [];
  const line = new DelayLine(realPlatform, (message) => released.push(message.toString()));
  return { released, line, hold: (text: string, delayMs: number) => line.hold(Buffer.from(text), delayMs) };
}

describe("a delay line", () => {
  test("releases messages when they are due, in the order they arrived", () => {
    const { released, line, hold } = delayed();
    hold("a", 20);
    hold("b", 5);
    hold("c", 50);
    hold("d", 0);
    expect([line.length, line.bytes]).toEqual([4, 4]);
    vi.advanceTimersByTime(19);
    expect(released).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(released).toEqual(["a", "b"]);
    vi.advanceTimersByTime(30);
    expect(released).toEqual(["a", "b", "c", "d"]);
    expect([line.length, line.bytes, vi.getTimerCount()]).toEqual([0, 0, 0]);
  });

  test("restarts after it was empty", () => {
    const { released, hold } = delayed();
    hold("a", 5);
    vi.advanceTimersByTime(5);
    hold("b", 5);
    vi.advanceTimersByTime(5);
    expect(released).toEqual(["a", "b"]);
  });

  test("clears everything, including its timer", () => {
    const { released, line, hold } = delayed();
    hold("a", 5);
    line.clear();
    expect([line.length, line.bytes, vi.getTimerCount()]).toEqual([0, 0, 0]);
    hold("b", 5);
    vi.advanceTimersByTime(5);
    expect(released).toEqual(["b"]);
  });

  test("releases a hundred thousand messages that are due together", () => {
    const { released, hold } = delayed();
    for (let i = 0; i < 100_000; i++) hold("x", 5);
    vi.advanceTimersByTime(5);
    expect(released).toHaveLength(100_000);
  });
});
