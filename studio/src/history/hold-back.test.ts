import { expect, test } from "vitest";
import { HoldBack } from "./hold-back.ts";

function heldBack(...changes: readonly [at: number, ...held: string[]][]): HoldBack {
  const queue = new HoldBack(1);
  for (const [at, ...held] of changes) queue.become(at, held);
  return queue;
}

const spans = (queue: HoldBack) => queue.tracks().map(({ text, from, to }) => [text, from, to]);

test("shows a message as held from its first listing to its last", () => {
  const queue = heldBack([10, "0.2"], [20, "0.2", "2.1"], [30, "2.1"]);
  expect(spans(queue)).toEqual([
    ["0.2", 10, 30],
    ["2.1", 20, null],
  ]);
  expect(queue.now).toEqual(["2.1"]);
});

test("shows nothing for a protocol without a hold-back queue, even after a crash", () => {
  const queue = new HoldBack(1);
  queue.lose(5);
  queue.supposeBefore(undefined);
  expect(queue.now).toBeNull();
  expect(spans(queue)).toEqual([]);
});

test("ends all held messages when the process ends", () => {
  const queue = heldBack([10, "0.2"]);
  queue.lose(15);
  expect(spans(queue)).toEqual([["0.2", 10, 15]]);
});

test("assumes the current queue for the past, unless more is known", () => {
  const queue = new HoldBack(1);
  queue.supposeBefore(["0.7"]);
  expect(spans(queue)).toEqual([["0.7", null, null]]);
  const known = heldBack([10, "0.2"]);
  known.supposeBefore(["0.7"]);
  expect(spans(known)).toEqual([["0.2", 10, null]]);
});

test("keeps the state at the cutoff when it forgets", () => {
  const queue = heldBack([10, "0.2"], [20, "0.2", "2.1"], [30, "2.1"]);
  queue.forget(5);
  expect(spans(queue)).toHaveLength(2);
  queue.forget(25);
  expect(spans(queue)).toEqual([
    ["0.2", null, 30],
    ["2.1", null, null],
  ]);
});

test("is bounded, and keeps the latest changes", () => {
  const queue = new HoldBack(1);
  for (let at = 0; at < 20_000; at++) queue.become(at, [`0.${at}`]);
  expect(queue.tracks().length).toBeLessThanOrEqual(3_000);
  expect(queue.now).toEqual(["0.19999"]);
});
