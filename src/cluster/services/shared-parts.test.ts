import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { untraced } from "../../../test/services/untraced.ts";
import { epochBully, heartbeat } from "../../protocols/index.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import type { MemberEvent } from "./api.ts";
import { SharedParts, type SharedPartsOptions } from "./shared-parts.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function played(leadership: SharedPartsOptions["leadership"] = null) {
  const events: MemberEvent[] = [];
  const parts = new SharedParts({
    platform: realPlatform,
    self: 1,
    peers: [2],
    known: [2],
    detector: heartbeat(),
    leadership,
    journal: leadership && memoryJournal(),
    send: () => ({ id: () => "", lost: null }),
    tell() {},
    heard() {},
    trace: untraced,
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

test("whoever says farewell before this member has begun is suspected as it begins, by the election of who serves as well", () => {
  const { parts, events } = played(epochBully());
  parts.receive(2, { type: "detector", body: { type: "farewell" } });
  parts.start();
  expect(parts.isSuspected(2)).toBe(true);
  expect(events.map(({ type }) => type)).toContain("peer-suspected");
  parts.stop();
});
