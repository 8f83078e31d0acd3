import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { View } from "../../core/protocol.ts";
import type { NodePicture } from "../feed.ts";
import { type Opinion, opinionsOf } from "./agreement.ts";
import { DisagreementWatch } from "./disagreement-watch.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function node(id: number, leader: number | null | undefined, process: NodePicture["process"] = "running"): NodePicture {
  const view = (leader === undefined ? { role: "watching" } : { role: "follower", leader }) as View;
  return { id, pid: 1, address: "", admin: "", process, exit: null, view, commands: [] };
}

test("only running members have opinions, and a protocol without leaders has none", () => {
  const nodes = [node(0, 2), node(1, 4, "paused"), node(2, 2), node(3, 4), node(4, 4), node(5, null)];
  expect(opinionsOf(nodes)).toEqual([
    { leader: 2, nodes: [0, 2] },
    { leader: 4, nodes: [3, 4] },
    { leader: null, nodes: [5] },
  ]);
  expect(opinionsOf([node(0, undefined), node(1, undefined)])).toEqual([]);
});

test("a disagreement is reported once, after it has lasted a moment", () => {
  const told: (readonly Opinion[])[] = [];
  const watch = new DisagreementWatch((opinions) => told.push(opinions));
  const agreed = [{ leader: 1, nodes: [0, 1] }];
  const split = [
    { leader: 0, nodes: [0] },
    { leader: 1, nodes: [1] },
  ];
  watch.note(split);
  vi.advanceTimersByTime(200);
  watch.note(agreed);
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual([]);

  watch.note(split);
  vi.advanceTimersByTime(200);
  watch.note(split); // A different part of the state has changed.
  vi.advanceTimersByTime(200);
  watch.note(split);
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual([split]);
});
