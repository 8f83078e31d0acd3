/** Checks a member's session. The test supplies the events of the log and the replica. */
import { expect, it } from "vitest";
import type { Context } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { memberSession } from "./session.ts";
import type { SessionOptions } from "./session-options.ts";
import type { MemberSession } from "./session-vocabulary.ts";

function session(options: Partial<SessionOptions> = {}) {
  const protocol = memberSession(options);
  const state = protocol.init(1, [2, 3]);
  const events: string[] = [];
  const replies: MemberSession["reply"][] = [];
  const emit = ({ type }: MemberSession["event"]): void => {
    if (events.push(type) > 100) throw new Error("it emits events forever");
  };
  const ctx = {
    self: 1,
    peers: [2, 3],
    emit,
    reply: (_request: number, reply: MemberSession["reply"]) => void replies.push(reply),
    setTimer() {},
    cancelTimer() {},
    compact() {},
  } as unknown as Context<MemberSession>;
  const tell = (command: MemberSession["command"]): void =>
    dispatch(protocol, state, { kind: "command", command }, ctx);
  return { events, replies, tell };
}

it("proposes nothing for an ended incarnation when another node becomes the leader", () => {
  const { events, replies, tell } = session();
  tell({ type: "led", leader: 2, term: 1 });
  tell({ type: "submit", request: 1, operation: { type: "add", name: "c", by: 1 } });
  expect(events).toEqual(["proposed"]);
  tell({ type: "answered", life: 1, session: null, round: 0, first: 1, replies: [], isOver: true, isRestored: false });
  expect(replies).toMatchObject([{ type: "refused", code: "session-expired" }]);
  tell({ type: "led", leader: 3, term: 2 });
  events.length = 0;
  tell({ type: "cork" });
  for (const request of [2, 3]) tell({ type: "query", request, query: { type: "count", name: "c" } });
  tell({ type: "uncork" });
  expect(events).toEqual(["reading"]);
  tell({ type: "submit", request: 4, operation: { type: "add", name: "c", by: 1 } });
  expect(events).toEqual(["reading", "proposed"]);
});

it("counts calls, not the parts of large ones, and bounds their total length", () => {
  const { replies, tell } = session({ maxPending: 5, maxPendingChars: 1_000_000 });
  const put = (request: number, chars: number): void =>
    tell({
      type: "submit",
      request,
      operation: { type: "put", map: "m", key: "k", value: "x".repeat(chars), isLeased: false },
    });
  put(1, 500_000); // The opening of the session is added.
  put(2, 400_000);
  expect(replies).toEqual([]);
  put(3, 200_000);
  expect(replies).toMatchObject([{ type: "refused", code: "overloaded", reason: expect.stringContaining("1000000") }]);
  put(4, 10);
  expect(replies).toHaveLength(1);
  for (const request of [5, 6]) put(request, 10);
  expect(replies.slice(1)).toMatchObject([
    { code: "overloaded", reason: "this member already has 5 operations in progress" },
  ]);
});

it("accepts an operation of any length if no other is in progress", () => {
  const { replies, tell } = session({ maxPending: 1, maxPendingChars: 1_000 });
  const value = "x".repeat(500_000);
  tell({ type: "submit", request: 1, operation: { type: "put", map: "m", key: "k", value, isLeased: false } });
  expect(replies).toEqual([]);
});
