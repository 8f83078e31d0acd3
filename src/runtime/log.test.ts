import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { uncaughtDuring } from "../../test/uncaught.ts";
import { createLog, logThrough } from "./log.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function written() {
  const lines: string[] = [];
  return { lines, log: createLog((level, text) => lines.push(`${level} ${text}`)) };
}

describe("the log", () => {
  test("writes each message with its level", () => {
    const { lines, log } = written();
    log.info("a");
    log.warn("b");
    log.error("c");
    expect(lines).toEqual(["info a", "warn b", "error c"]);
  });

  test("writes a repeated message once, then with its count after a minute", () => {
    const { lines, log } = written();
    for (let i = 0; i < 100; i++) log.once("full", `the queue is full, ${i}`);
    vi.advanceTimersByTime(59_999);
    log.once("full", "the queue is full, at last");
    expect(lines).toEqual(["warn the queue is full, 0"]);
    vi.advanceTimersByTime(1);
    log.once("full", "the queue is full, still");
    expect(lines.slice(1)).toEqual(["warn the queue is full, still (101 more times in the last 60 s)"]);
    log.once("full", "the queue is full, again");
    expect(lines).toHaveLength(2);
  });

  test("counts repetitions for a logger that is an event emitter, like pino's and winston's", () => {
    const lines: string[] = [];
    const write = (text: string): void => void lines.push(text);
    const emitter = Object.assign(new EventEmitter(), { info: write, warn: write, error: write });
    const log = logThrough(emitter, Date.now);
    for (let i = 0; i < 3; i++) log.once("full", `the queue is full, ${i}`);
    expect(lines).toEqual(["the queue is full, 0"]);
    expect(logThrough(log, Date.now)).toBe(log);
  });

  test("keeps different keys apart", () => {
    const { lines, log } = written();
    log.once("a", "a");
    log.once("b", "b");
    log.once("a", "a");
    expect(lines).toEqual(["warn a", "warn b"]);
  });

  test("is bounded for any number of different keys", () => {
    const { lines, log } = written();
    for (let i = 0; i < 5_000; i++) log.once(`refused ${i}`, "refused");
    expect(lines).toHaveLength(1_001);
  });

  test("an error thrown by the caller's logger is uncaught, and the member continues", async () => {
    vi.useRealTimers();
    const log = createLog(() => {
      throw new Error("of the caller");
    });
    const faults = await uncaughtDuring(() => {
      log.error("a");
      log.once("b", "b");
    });
    expect(faults).toEqual([new Error("of the caller"), new Error("of the caller")]);
  });

  test("lets no outsider start a line, control a terminal or reverse text", () => {
    const { lines, log } = written();
    log.once("cluster", 'got "a\nerror: all is lost\r\u{1b}[2J\u{9b}2J\u{202e}\u{2028}ü"');
    expect(lines).toEqual([
      `warn got "a${"\u{FFFD}error: all is lost"}\u{FFFD}\u{FFFD}[2J\u{FFFD}2J\u{FFFD}\u{FFFD}ü"`,
    ]);
  });
});
