/** One lock of a member, at the ends of the wires that its algorithm declares. */
import { expect, test } from "vitest";
import type { Tagged } from "../../core/protocol.ts";
import { monitoredElectedServer } from "../../protocols/mutex/elected-server/elected-server.ts";
import { Wired } from "./wired.ts";

function lock() {
  const taken: Tagged[] = [];
  const shared: [string, Tagged][] = [];
  const wired = new Wired(
    "mutex",
    monitoredElectedServer.wires,
    (command) => void taken.push(command),
    (part, command) => void shared.push([part, command]),
  );
  return { wired, taken, shared };
}

test("what a shared part emits comes to the lock alone: other shared parts are told once, and not by each lock", () => {
  const { wired, taken, shared } = lock();
  wired.onShared({ type: "elected", leader: 2, epoch: 7 });
  wired.onShared({ type: "suspected", node: 3 });
  wired.onShared({ type: "confirmed", epoch: 7 }); // Goes to nobody.
  expect(taken).toEqual([
    { type: "elected", leader: 2, epoch: 7 },
    { type: "suspect", node: 3 },
  ]);
  expect(shared).toEqual([]);
  expect(["election", "detector", "mutex"].filter((part) => wired.listensTo(part))).toEqual(["election", "detector"]);
});

test("a lock whose tokens are used up has the election hold another", () => {
  const { wired, taken, shared } = lock();
  wired.onOwn({ type: "exhausted", epoch: 7 });
  wired.onOwn({ type: "entered", token: 1 }); // For the program.
  expect(shared).toEqual([
    ["election", { type: "resign" }],
    ["election", { type: "stand" }],
  ]);
  expect(taken).toEqual([]);
});
