import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { heartbeat } from "../../protocols/index.ts";
import type { MemberEvent } from "./api.ts";
import { SharedParts } from "./shared-parts.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function played() {
  const events: MemberEvent[] = [];
  const parts = new SharedParts({
    self: 1,
    peers: [2],
    detector: heartbeat(),
    leadership: null,
    journal: null,
    send: () => ({ id: () => "", lost: null }),
    tell() {},
    heard() {},
    publish: (event) => void events.push(event),
    onFatal(error) {
      throw error;
    },
  });
  return { parts, events };
}

test("a member whose beats are late is not suspected while it sends anything else", () => {
  const { parts, events } = played();
  parts.hear(2); // Before the detector runs it is of no use, and does no harm.
  parts.start();
  events.length = 0; // But that a majority is heard.
  for (let passedMs = 0; passedMs < 2_000; passedMs += 10) {
    parts.hear(2);
    vi.advanceTimersByTime(10);
  }
  expect(events).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(events.map(({ type }) => type)).toEqual(["peer-suspected", "quorum-lost"]);
  parts.stop();
  parts.hear(2);
});

test("whom it suspects is restored by its beats alone, and not by what was on its way when it fell silent", () => {
  const { parts, events } = played();
  parts.start();
  vi.advanceTimersByTime(1_000);
  parts.hear(2);
  expect(parts.isSuspected(2)).toBe(true);
  parts.receive(2, { type: "detector", body: { type: "alive", beat: 1 } as never });
  expect(parts.isSuspected(2)).toBe(false);
  expect(events.map(({ type }) => type)).toContain("peer-restored");
  parts.stop();
});
