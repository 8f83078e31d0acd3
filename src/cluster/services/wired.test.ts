/** One lock of a member, at the ends of the wires that its algorithm declares. */
import { expect, test } from "vitest";
import type { Tagged } from "../../core/protocol.ts";
import { monitoredElectedServer } from "../../protocols/mutex/elected-server/elected-server.ts";
import { wired } from "./wired.ts";

function lock() {
  const taken: Tagged[] = [];
  const shared: [string, Tagged][] = [];
  const own = wired(
    "mutex",
    monitoredElectedServer.wires,
    (command) => void taken.push(command),
    (part, command) => void shared.push([part, command]),
  );
  return { own, taken, shared };
}

test("what a shared part emits comes to the lock alone: other shared parts are told once, and not by each lock", () => {
  const { own, taken, shared } = lock();
  own.onShared({ type: "elected", leader: 2, epoch: 7 });
  own.onShared({ type: "suspected", node: 3 });
  own.onShared({ type: "confirmed", epoch: 7 }); // Goes to nobody.
  expect(taken).toEqual([
    { type: "elected", leader: 2, epoch: 7 },
    { type: "suspect", node: 3 },
  ]);
  expect(shared).toEqual([]);
  expect(["election", "detector", "mutex"].filter((part) => own.listensTo(part))).toEqual(["election", "detector"]);
});

test("a lock whose tokens are used up has the election hold another", () => {
  const { own, taken, shared } = lock();
  own.onOwn({ type: "exhausted", epoch: 7 });
  own.onOwn({ type: "entered", token: 1 }); // For the program.
  expect(shared).toEqual([
    ["election", { type: "resign" }],
    ["election", { type: "stand" }],
  ]);
  expect(taken).toEqual([]);
});
