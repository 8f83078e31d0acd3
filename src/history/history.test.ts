import { describe, expect, it } from "vitest";
import { type EventType, type HistoryEvent, historyOf } from "./history.ts";

const event = (process: number, type: EventType, at: number, f = "read", line: number | null = null): HistoryEvent => ({
  process,
  type,
  f,
  value: type === "invoke" ? null : at,
  key: undefined,
  at,
  line,
});

describe("a history of events", () => {
  it("pairs calls with returns, in the order of calls", () => {
    const { operations } = historyOf([
      event(1, "invoke", 1),
      event(0, "invoke", 0),
      event(1, "ok", 2),
      event(0, "ok", 3),
    ]);
    expect(operations).toMatchObject([
      { process: 0, call: 0, return: 3, output: 3 },
      { process: 1, call: 1, return: 2, output: 2 },
    ]);
  });

  it("omits failed operations", () => {
    expect(historyOf([event(0, "invoke", 0), event(0, "fail", 1)]).operations).toEqual([]);
  });

  it("treats operations that end in info, or not at all, as pending with unknown output", () => {
    const { operations } = historyOf([event(0, "invoke", 0), event(0, "info", 1), event(1, "invoke", 2)]);
    expect(operations).toMatchObject([{ return: null }, { return: null }]);
    expect(operations.map(({ output }) => output)).toEqual([undefined, undefined]);
  });

  it("lets a process with a pending operation call again", () => {
    const { operations } = historyOf([
      event(0, "invoke", 0),
      event(0, "info", 1),
      event(0, "invoke", 2),
      event(0, "ok", 3),
    ]);
    expect(operations).toMatchObject([{ return: null }, { return: 3 }]);
  });

  it("keeps events of equal time in the order of the log", () => {
    const events = [event(0, "invoke", 5), event(0, "ok", 5), event(0, "invoke", 5), event(0, "ok", 5)];
    expect(historyOf(events).operations).toHaveLength(2);
  });

  it("takes the object from the call or from the answer", () => {
    const named = (one: HistoryEvent, key: string) => ({ ...one, key });
    expect(historyOf([named(event(0, "invoke", 0), "x"), event(0, "ok", 1)]).operations[0]?.key).toBe("x");
    expect(historyOf([event(0, "invoke", 0), named(event(0, "ok", 1), "x")]).operations[0]?.key).toBe("x");
  });

  it.each([
    [
      "a second call",
      [event(0, "invoke", 0, "write", 1), event(0, "invoke", 1, "read", 2)],
      'line 2: expected type to be ok, fail or info, got "invoke": of process 0 its write in line 1 is still open',
    ],
    [
      "a return without a call",
      [event(7, "ok", 1, "read", 3)],
      'line 3: expected type to be invoke, got "ok": of process 7 it has nothing open',
    ],
    [
      "a return of something else",
      [event(0, "invoke", 0, "write", 1), event(0, "ok", 1, "read", 2)],
      'line 2: expected f to be write, as called in line 1, got "read"',
    ],
    [
      "a return before the call",
      [event(0, "invoke", 5), event(0, "ok", 4)],
      'expected type to be invoke, got "ok": of process 0 it has nothing open',
    ],
  ])("rejects %s", (_what, events, message) => {
    expect(() => historyOf(events)).toThrow(message);
  });
});
