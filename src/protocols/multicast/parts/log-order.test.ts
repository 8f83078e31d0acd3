import { describe, expect, it } from "vitest";
import type { CommandOf, NodeId } from "../../../core/protocol.ts";
import { text } from "../../../core/shape.ts";
import { simulation } from "../../../sim/simulation.ts";
import { type LogOrder, logOrder } from "./log-order.ts";

const SESSION = 4;
const MAX_WAITING = 1_000;
const enter = (wait: number) => ({
  type: "asked",
  operation: { type: "enterGroup", name: "group", wait, setting: "" },
});
const leave = { type: "asked", operation: { type: "leaveGroup", name: "group" } };
const say = (payload: string, number = 1, wait = 1) => ({
  type: "asked",
  operation: { type: "say", name: "group", wait, number, to: null, text: JSON.stringify(payload) },
});
const installed = (view: number, ...members: NodeId[]) => ({ type: "installed", view, members });
const delivered = (from: NodeId, payload: string, revision: number) => ({
  type: "delivered",
  from,
  payload,
  id: `${from}.${revision}`,
});
const ejected = { type: "ejected" };

/** Creates node 0 alone. The test sends the commands that the service would send. */
function member(options?: { group?: string }) {
  const sim = simulation<LogOrder>({ protocol: logOrder(options, text(20)), nodes: [0], seed: 1, delayMs: 1 });
  sim.start(0);
  let seen = 0;
  /** Sends a command and returns the node's events. */
  const tell = (command: CommandOf<LogOrder>) => {
    sim.command(0, command);
    const events = sim.events(0).slice(seen);
    seen += events.length;
    return events;
  };
  /** Installs a view with these members, given by session, node and entry count. */
  const grouped = (view: number, ...members: [session: number, member: NodeId, wait: number][]) =>
    tell({
      type: "grouped",
      name: "group",
      view,
      members: members.map(([session, node, wait]) => ({ session, member: node, wait, spoken: 0 })),
    });
  const said = (from: NodeId, payload: unknown, revision: number, name = "group") =>
    tell({ type: "said", name, from, text: typeof payload === "string" ? JSON.stringify(payload) : "", revision });
  return {
    sim,
    tell,
    grouped,
    said,
    state: () => sim.world.state(0),
    send: (payload: string) => tell({ type: "send", payload }),
  };
}

/** Brings the node into view 10, with node 2. */
function inGroup() {
  const node = member();
  node.tell({ type: "began", session: SESSION });
  node.grouped(10, [7, 2, 1], [SESSION, 0, 1]);
  return node;
}

describe("total order by the log: joining and leaving", () => {
  it("requests a session when it starts, enters with it, and is in the group from the first view that contains it", () => {
    const { tell, grouped, said, state } = member();
    expect(tell({ type: "began", session: SESSION })).toEqual([leave, enter(1)]);
    expect(state()).toMatchObject({ membership: "entering", view: 0, members: [] });
    expect(said(2, "early", 8)).toEqual([]);
    expect(grouped(9, [7, 2, 1])).toEqual([]); // This group has other members only.
    expect(grouped(10, [7, 2, 1], [SESSION, 0, 1])).toEqual([installed(10, 0, 2)]);
    expect(said(2, "hello", 11)).toEqual([delivered(2, "hello", 11)]);
    expect(tell({ type: "began", session: SESSION })).toEqual([]); // A repeated notification.
  });

  it("reports the members of each view, in the order of ids", () => {
    const { grouped } = inGroup();
    expect(grouped(12, [SESSION, 0, 1], [9, 3, 1], [8, 1, 2])).toEqual([installed(12, 0, 1, 3)]);
  });

  it("ignores other groups", () => {
    const node = member({ group: "mine" });
    expect(node.tell({ type: "began", session: SESSION })[1]).toMatchObject({ operation: { name: "mine" } });
    const members = [{ session: SESSION, member: 0, wait: 1, spoken: 0 }];
    expect(node.grouped(10, [SESSION, 0, 1])).toEqual([]);
    expect(node.tell({ type: "grouped", name: "mine", view: 10, members })).toEqual([installed(10, 0)]);
    expect(node.said(2, "x", 11, "group")).toEqual([]);
    expect(node.said(2, "x", 12, "mine")).toEqual([delivered(2, "x", 12)]);
  });

  it("keeps receiving after its session ends, and enters with the next; ignores the end of an earlier one", () => {
    const { tell, said, grouped, state } = inGroup();
    expect(tell({ type: "over", session: SESSION - 1 })).toEqual([]);
    expect(tell({ type: "over", session: SESSION })).toEqual([leave]);
    expect(state()).toMatchObject({ membership: "inside", session: null, isMember: false });
    expect(said(2, "meanwhile", 11)).toEqual([delivered(2, "meanwhile", 11)]);
    expect(grouped(12, [SESSION, 0, 1])).toEqual([installed(12, 0)]); // The log still lists the node.
    expect(grouped(13, [7, 2, 1])).toEqual([installed(13, 2)]);
    expect(tell({ type: "began", session: 20 })).toEqual([enter(2)]);
    expect(grouped(22, [20, 0, 2])).toEqual([installed(22, 0)]);
    expect(state()).toMatchObject({ isMember: true });
  });

  it("is ejected and enters again if a snapshot took it past messages; its earlier messages belong to another member", () => {
    const { tell, said, grouped } = inGroup();
    expect(tell({ type: "restored" })).toEqual([ejected, enter(2)]);
    expect(said(2, "missed", 30)).toEqual([]);
    expect(grouped(31, [7, 2, 1], [SESSION, 0, 1], [9, 1, 1])).toEqual([]); // The node has not re-entered yet.
    expect(grouped(32, [7, 2, 1], [9, 1, 1], [SESSION, 0, 2])).toEqual([installed(32, 0, 1, 2)]);
  });

  it("requests again, under another number, if a snapshot arrives while it enters: it may have missed its view", () => {
    const { tell, grouped } = member();
    tell({ type: "began", session: SESSION });
    expect(tell({ type: "restored" })).toEqual([enter(2)]);
    expect(grouped(10, [SESSION, 0, 1])).toEqual([]);
    expect(grouped(11, [SESSION, 0, 2])).toEqual([installed(11, 0)]);
  });

  it("has nothing to enter again after a snapshot while it has no session", () => {
    const { tell } = member();
    expect(tell({ type: "restored" })).toEqual([leave]); // The node was restored at its start.
  });

  it("enters again if a view does not contain it", () => {
    const { grouped } = inGroup();
    expect(grouped(12, [7, 2, 1])).toEqual([installed(12, 2), enter(2)]);
  });

  it.each<[string, number, readonly object[]]>([
    ["enterGroup", 1, [enter(2)]],
    ["say", 1, [enter(2)]],
    ["say, of a time before", 0, []],
  ])("enters again if its request failed: %s", (what, wait, events) => {
    const { tell } = inGroup();
    const operation = what.startsWith("say")
      ? ({ type: "say", name: "group", wait, number: 1, to: null, text: "x" } as const)
      : ({ type: "enterGroup", name: "group", wait, setting: "" } as const);
    expect(tell({ type: "notDone", operation })).toEqual(events);
  });

  it("requests a session again while it has none", () => {
    const { tell } = member();
    const notDone = { type: "notDone", operation: { type: "leaveGroup", name: "group" } } as const;
    expect(tell(notDone)).toEqual([leave, leave]);
    tell({ type: "began", session: SESSION });
    expect(tell(notDone)).toEqual([]);
  });

  it("reports whether the log has a leader", () => {
    const { tell } = inGroup();
    expect(tell({ type: "led", leader: null })).toEqual([{ type: "stalled" }]);
    expect(tell({ type: "led", leader: 2 })).toEqual([{ type: "resumed" }]);
  });

  it("leaves permanently: no later event brings it back", () => {
    const { tell, grouped, said, send } = inGroup();
    expect(tell({ type: "leave" })).toEqual([leave, { type: "left" }]);
    const enterAgain = {
      type: "notDone",
      operation: { type: "enterGroup", name: "group", wait: 1, setting: "" },
    } as const;
    for (const command of [
      { type: "leave" } as const,
      { type: "began", session: 20 } as const,
      { type: "over", session: SESSION } as const,
      { type: "restored" } as const,
      enterAgain,
    ])
      expect(tell(command)).toEqual([]);
    expect(grouped(12, [SESSION, 0, 1])).toEqual([]);
    expect(said(2, "late", 13)).toEqual([]);
    expect(send("late")).toEqual([]);
  });
});

describe("total order by the log: messages", () => {
  it("are sent in the group and delivered in log order, its own as well", () => {
    const { send, said } = inGroup();
    expect(send("hello")).toEqual([say("hello")]);
    expect(said(2, "before", 11)).toEqual([delivered(2, "before", 11)]);
    expect(said(0, "hello", 12)).toEqual([delivered(0, "hello", 12)]);
  });

  it("wait outside of the group, and are sent in the first view, in order", () => {
    const { send, tell, grouped } = member();
    expect(send("a")).toEqual([leave]);
    tell({ type: "began", session: SESSION });
    expect(send("b")).toEqual([]);
    expect(grouped(10, [SESSION, 0, 1])).toEqual([installed(10, 0), say("a"), say("b", 2)]);
    expect(grouped(11, [SESSION, 0, 1])).toEqual([installed(11, 0)]);
  });

  it("are refused if too many wait", () => {
    const { send, tell, grouped } = member();
    tell({ type: "began", session: SESSION });
    for (let n = 0; n < MAX_WAITING; n++) expect(send(`${n}`)).toEqual([]);
    expect(send("more")).toEqual([{ type: "refused", payload: "more" }]);
    const events = grouped(10, [SESSION, 0, 1]);
    expect(events).toHaveLength(1 + MAX_WAITING);
    expect(events.at(-1)).toEqual(say(`${MAX_WAITING - 1}`, MAX_WAITING));
    expect(send("more")).toEqual([say("more", MAX_WAITING + 1)]);
  });

  it("are sent again after it has entered again, except those that the log had accepted", () => {
    const { send, said, grouped } = inGroup();
    expect([...send("a"), ...send("b"), ...send("c")]).toEqual([say("a"), say("b", 2), say("c", 3)]);
    expect(said(0, "a", 11)).toEqual([delivered(0, "a", 11)]);
    expect(grouped(12, [7, 2, 1])).toEqual([installed(12, 2), enter(2)]);
    expect(send("d")).toEqual([]);
    expect(grouped(13, [7, 2, 1], [SESSION, 0, 2])).toEqual([
      installed(13, 0, 2),
      ...[say("b", 1, 2), say("c", 2, 2), say("d", 3, 2)],
    ]);
  });

  it("are lost to their sender if a snapshot took it past them: it cannot know whether they were accepted", () => {
    const { send, tell, grouped } = inGroup();
    send("a");
    expect(tell({ type: "restored" })).toEqual([ejected, enter(2)]);
    expect(grouped(13, [SESSION, 0, 2])).toEqual([installed(13, 0)]);
  });

  it.each([
    ["no JSON", "{"],
    ["no payload", "7"],
    ["a payload that is too long", JSON.stringify("x".repeat(21))],
    ["nothing", ""],
  ])("are dropped if they are %s, and the next one is delivered", (_what, text) => {
    const { tell, said } = inGroup();
    expect(tell({ type: "said", name: "group", from: 2, text, revision: 11 })).toEqual([]);
    expect(said(2, "hello", 12)).toEqual([delivered(2, "hello", 12)]);
  });
});
