import { describe, expect, it } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { keysOf, valuesOf } from "../keyspace/table.ts";
import { FIRST_CLIENT, type GroupOperation, STATE_MACHINE_VERSION } from "./operations.ts";
import { isBusy } from "./sessions.ts";
import { dataProblem } from "./state-shape.ts";

const enter = (wait = 1, name = "g"): GroupOperation => ({ type: "enterGroup", name, wait, setting: "" });
const leave = (name = "g"): GroupOperation => ({ type: "leaveGroup", name });
const say = (text: string, wait = 1, to: number | null = null, number = 0): GroupOperation => ({
  type: "say",
  name: "g",
  wait,
  number,
  to,
  text,
});
const done = { type: "done" };

/** Opens sessions for members 0, 1, …, and collects the events of their operations. */
function withSessions(count: number, limits = {}) {
  const replica = oneReplica(limits);
  const sessions = Array.from({ length: count }, (_, member) => replica.open(member));
  replica.events();
  /** Returns the views emitted since the last call: their members, as session and membership number. */
  const views = () =>
    replica
      .events()
      .flatMap((event) =>
        event.type === "grouped" ? [event.members.map(({ member, wait }) => `${member}#${wait}`)] : [],
      );
  return { ...replica, sessions, views };
}

describe("a group", () => {
  it("accepts numbered messages only in order, from 1 for each membership, and others in any order", () => {
    const { apply } = withSessions(1);
    apply(0, enter());
    const numbered = (number: number, wait = 1) => apply(0, say("a", wait, null, number)).type;
    expect([2, 1, 1, 3, 2, 0, 3].map((number) => numbered(number))).toEqual([
      "refused",
      "done",
      "refused",
      "refused",
      "done",
      "done",
      "done",
    ]);
    apply(0, enter(2));
    expect([numbered(4, 2), numbered(1, 2)]).toEqual(["refused", "done"]);
  });

  it("has views: a new member comes last, and each view has its own revision", () => {
    const { apply, events, sessions } = withSessions(2);
    expect(apply(1, enter())).toEqual(done);
    expect(apply(0, enter())).toEqual(done);
    const [first = 0, second = 0] = sessions;
    const one = { session: second, member: 1, wait: 1, spoken: 0 };
    expect(events()).toEqual([
      { type: "grouped", name: "g", view: 2, members: [one] },
      {
        type: "grouped",
        name: "g",
        view: 3,
        members: [one, { session: first, member: 0, wait: 1, spoken: 0 }],
      },
    ]);
  });

  it("has a session that enters again last, once, as a new member", () => {
    const { apply, views } = withSessions(2);
    for (const member of [0, 1]) apply(member, enter());
    views();
    expect(apply(0, enter(2))).toEqual(done);
    expect(views()).toEqual([["1#1", "0#2"]]);
  });

  it("continues without members that leave, and is deleted when it is empty", () => {
    const { apply, data, views } = withSessions(2);
    for (const member of [0, 1]) apply(member, enter());
    views();
    apply(0, leave());
    expect(views()).toEqual([["1#1"]]);
    apply(1, leave());
    expect(views()).toEqual([[]]);
    expect(keysOf(data.groups)).toEqual([]);
  });

  it("has no new view when a session leaves that is not in it", () => {
    const { apply, data, events } = withSessions(1);
    expect(apply(0, leave())).toEqual(done);
    expect(events()).toEqual([]);
    expect(keysOf(data.groups)).toEqual([]);
  });

  it("loses a member when its session ends, for any reason", () => {
    const { apply, data, end, open, propose, views, sessions } = withSessions(3);
    for (const member of [0, 1, 2]) apply(member, enter());
    views();
    end(0);
    expect(views()).toEqual([["1#1", "2#1"]]);
    propose(1, { type: "expire", session: sessions[1] ?? 0, seen: data.sessions[0]?.seen ?? 0 });
    expect(views()).toEqual([["2#1"]]);
    const open2 = { type: "begin" as const, ttlMs: 1_000, version: STATE_MACHINE_VERSION };
    propose(2, { type: "operations", life: 2, round: 1, acknowledged: 0, first: 1, operations: [open2] });
    expect(views()).toEqual([[]]); // Member 2's next incarnation has a new session.
    open(1);
    apply(1, enter());
    expect(views()).toEqual([["1#1"]]);
  });

  it("is independent of groups with other names", () => {
    const { apply, events } = withSessions(2);
    apply(0, enter(1, "g"));
    apply(1, enter(1, "h"));
    events();
    apply(0, leave("h"));
    expect(events()).toEqual([]);
    apply(1, leave("h"));
    expect(events()).toMatchObject([{ type: "grouped", name: "h", members: [] }]);
  });
});

describe("messages in a group", () => {
  it("are delivered in log order, with increasing revisions, to all or to one, and are not stored", () => {
    const { apply, data, events } = withSessions(2);
    for (const member of [0, 1]) apply(member, enter());
    const before = JSON.stringify(data.groups);
    const { revision } = data.keyspace;
    events();
    expect(apply(1, say("a"))).toEqual(done);
    expect(apply(0, say("b", 1, 1))).toEqual(done);
    expect(events()).toEqual([
      { type: "said", name: "g", from: 1, to: null, text: "a", revision: revision + 1 },
      { type: "said", name: "g", from: 0, to: 1, text: "b", revision: revision + 2 },
    ]);
    expect(JSON.stringify(data.groups)).toBe(before);
  });

  it.each<[string, (replica: ReturnType<typeof withSessions>) => void]>([
    ["has never entered", () => {}],
    ["has entered another group", ({ apply }) => apply(0, enter(1, "h"))],
    ["has left", ({ apply }) => [apply(0, enter()), apply(0, leave())]],
    ["has entered again since", ({ apply }) => [apply(0, enter(1)), apply(0, enter(2))]],
    ["has begun another session since", ({ apply, end, open }) => [apply(0, enter()), end(0), open(0)]],
  ])("are refused, and not delivered, if the sender %s", (_why, prepare) => {
    const replica = withSessions(2);
    replica.apply(1, enter());
    prepare(replica);
    replica.events();
    expect(replica.apply(0, say("late"))).toMatchObject({ type: "refused", code: "not-held" });
    expect(replica.events()).toEqual([]);
  });
});

describe("groups", () => {
  it("are of members: a client is refused", () => {
    const { apply, data, open } = withSessions(0);
    open(FIRST_CLIENT);
    expect(apply(FIRST_CLIENT, enter())).toMatchObject({ type: "refused", code: "bad-operation" });
    expect(keysOf(data.groups)).toEqual([]);
  });

  it("have as many members as may wait for one name, and a member may enter again", () => {
    const { apply } = withSessions(3, { maxWaiting: 2 });
    expect([0, 1].map((member) => apply(member, enter()))).toEqual([done, done]);
    expect(apply(2, enter())).toMatchObject({
      type: "refused",
      code: "too-many",
      reason: expect.stringContaining("2"),
    });
    expect(apply(0, enter(2))).toEqual(done);
    apply(1, leave());
    expect(apply(2, enter())).toEqual(done);
  });

  it("are limited in number, and a deleted one makes room for another", () => {
    const { apply } = withSessions(2, { maxNames: 2 });
    for (const name of ["a", "b"]) expect(apply(0, enter(1, name))).toEqual(done);
    expect(apply(0, enter(1, "c"))).toMatchObject({ type: "refused", code: "too-many" });
    expect(apply(1, enter(1, "b"))).toEqual(done); // The group exists already.
    apply(0, leave("a"));
    expect(apply(0, enter(1, "c"))).toEqual(done);
  });

  it("keep the session of each member from being closed as idle", () => {
    const { apply, data, sessions } = withSessions(2);
    const [first = 0, second = 0] = sessions;
    apply(0, enter());
    expect([first, second].map((session) => isBusy(data, session))).toEqual([true, false]);
    expect(apply(0, { type: "close", ifIdle: true } as never)).toMatchObject({ code: "in-use" });
    apply(0, leave());
    expect(isBusy(data, first)).toBe(false);
  });

  it("are in snapshots", () => {
    const { apply, data } = withSessions(2);
    for (const name of ["b", "a"]) for (const member of [0, 1]) apply(member, enter(1, name));
    expect(keysOf(data.groups)).toEqual(["a", "b"]);
    expect(dataProblem(data)).toBe(null);
    expect(
      dataProblem({ ...data, groups: { size: 2, blocks: [{ keys: ["b", "a"], values: valuesOf(data.groups) }] } }),
    ).toMatch(/to be in order/);
    expect(
      dataProblem({ ...data, groups: { size: 1, blocks: [{ keys: ["a"], values: [{ members: [{ session: 1 }] }] }] } }),
    ).toMatch(/groups/);
  });
});
