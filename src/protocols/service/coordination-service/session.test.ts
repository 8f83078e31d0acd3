/** A member's session, told by hand what the log and its replica say. */
import { expect, it } from "vitest";
import type { Context } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { memberSession } from "./session.ts";
import type { MemberSession } from "./session-vocabulary.ts";

function session() {
  const protocol = memberSession();
  const state = protocol.init(1, [2, 3]);
  const events: string[] = [];
  const replies: MemberSession["reply"][] = [];
  const emit = ({ type }: MemberSession["event"]): void => {
    if (events.push(type) > 100) throw new Error("it says the same for ever");
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

it("puts nothing to the log for a life that is over, when another leads it", () => {
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
