import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PauseNotes } from "./pause-notes.ts";

let now = 0;
const noted: [number, string][] = [];
const notes = () =>
  new PauseNotes(
    (at, kind) => noted.push([at, kind]),
    100,
    () => now,
  );

beforeEach(() => {
  vi.useFakeTimers();
  noted.length = 0;
});
afterEach(() => void vi.useRealTimers());

test("entries after a pause follow its end, though the end was seen later", () => {
  const pauses = notes();
  now = 1_000;
  pauses.seenPaused();
  pauses.did(990); // An earlier entry arrives late.
  vi.advanceTimersByTime(100);
  expect(noted).toEqual([[1_000, "pause"]]);
  pauses.did(2_000);
  expect(noted).toEqual([
    [1_000, "pause"],
    [1_999.999, "resume"],
  ]);
  now = 2_015;
  pauses.seenRunning();
  vi.advanceTimersByTime(100);
  expect(noted).toHaveLength(2);
});

test("a silent process, or one with late entries, resumes right after it was last seen paused", () => {
  const pauses = notes();
  now = 1_000;
  pauses.seenPaused();
  now = 1_040;
  pauses.seenStillPaused();
  now = 1_050;
  pauses.seenRunning();
  vi.advanceTimersByTime(100);
  expect(noted).toEqual([
    [1_000, "pause"],
    [1_040.001, "resume"],
  ]);
});

test("notes a short pause before its end", () => {
  const pauses = notes();
  now = 1_000;
  pauses.seenPaused();
  pauses.did(1_020);
  vi.advanceTimersByTime(200);
  expect(noted).toEqual([
    [1_000, "pause"],
    [1_019.999, "resume"],
  ]);
});

test("a process sent SIGSTOP was paused from then on, or from its last entry, though that was seen later", () => {
  const pauses = notes();
  now = 1_000;
  pauses.signalled("SIGSTOP");
  pauses.did(1_000.25);
  now = 1_700;
  pauses.seenPaused();
  pauses.did(1_000.5); // A last entry arrives late.
  vi.advanceTimersByTime(100);
  expect(noted).toEqual([[1_000.501, "pause"]]);
  pauses.did(2_000);
  expect(noted.slice(1)).toEqual([[1_999.999, "resume"]]);
});

test("a signal before a resumption does not apply to another pause", () => {
  const pauses = notes();
  now = 1_000;
  pauses.signalled("SIGSTOP");
  pauses.signalled("SIGCONT");
  now = 5_000;
  pauses.seenPaused();
  vi.advanceTimersByTime(100);
  expect(noted).toEqual([[5_000, "pause"]]);
});
