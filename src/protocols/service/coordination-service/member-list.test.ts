/** Checks changes to the member list: the desired list, and the log's steps toward it. */
import { beforeEach, describe, expect, test } from "vitest";
import { hasShape } from "../../../core/shape.ts";
import { applyToMembers, membersIn, nextConfiguration, noteConfiguration } from "./member-list.ts";
import type { MemberList, MemberOperation, MemberStep } from "./member-words.ts";
import { MAX_OPERATION_BYTES, operationShape } from "./operations.ts";
import { type Applying, emptyData } from "./state.ts";

let on: Applying;
const apply = (operation: MemberOperation) => applyToMembers(on, operation);
const list = (): MemberList => membersIn(on.data) as MemberList;
const add = (member: number, isVoter = true): MemberStep => ({
  ...{ type: "addMember", member, address: `10.0.0.${member}:7100` },
  ...{ isVoter, replaces: null },
});
const remove = (member: number): MemberStep => ({ type: "removeMember", member });
const change = (...steps: MemberStep[]) => apply({ type: "changeMembers", steps });
const wishes = (): string =>
  list()
    .members.map(({ member, wish }) => `${member} ${wish}`)
    .join(", ");

/** Makes the log adopt each requested configuration. @returns the configurations */
function follow(): string[] {
  const steps: string[] = [];
  for (let next = nextConfiguration(list()); next !== null; next = nextConfiguration(list())) {
    noteConfiguration(on, next);
    steps.push(`${next.voters} + ${next.learners}`);
  }
  return steps;
}

beforeEach(() => {
  on = { data: emptyData(), limits: {} as Applying["limits"], tell: () => {} };
  const founder = (member: number) => ({ member, address: `10.0.0.${member}:7100`, journal: `j${member}` });
  apply({ type: "foundMembers", members: [1, 2, 3].map(founder) });
});

describe("several changes at once", () => {
  test("new members first become learners, then the voters change in one step", () => {
    expect(change(add(4), add(5), remove(1), remove(2))).toEqual({ type: "done" });
    expect(wishes()).toBe("1 leaving, 2 leaving, 3 voter, 4 voter, 5 voter");
    expect(follow()).toEqual(["1,2,3 + 4,5", "3,4,5 + "]);
    expect(wishes()).toBe("3 voter, 4 voter, 5 voter");
    expect(list().removed).toEqual([1, 2]);
  });

  test("all members can be replaced in one change", () => {
    expect(change(remove(1), remove(2), remove(3), add(4), add(5), add(6))).toEqual({ type: "done" });
    expect(follow()).toEqual(["1,2,3 + 4,5,6", "4,5,6 + "]);
  });

  test("learners can be added, removed and promoted in it", () => {
    change(add(4, false), add(5, false));
    follow();
    expect(change({ type: "promoteMember", member: 4 }, remove(5), remove(3), add(6, false))).toEqual({ type: "done" });
    expect(follow()).toEqual(["1,2,3 + 4,5,6", "1,2,4 + 6"]);
  });

  test.each([
    ["an id that is known", [add(4), add(3)], "member-exists"],
    ["an address that is taken", [add(4), { ...add(5), address: "10.0.0.4:7100" } as MemberStep], "member-exists"],
    ["a member that is unknown", [remove(1), remove(9)], "unknown-member"],
    ["no voter", [remove(1), remove(2), remove(3), add(4, false)], "last-voter"],
    ["a member that is named twice", [add(4), remove(4)], "bad-operation"],
  ])("%s causes a refusal without effect", (_what, steps, code) => {
    const before = JSON.stringify(list());
    expect(change(...steps)).toMatchObject({ type: "refused", code });
    expect(JSON.stringify(list())).toBe(before);
  });

  test("the next one is refused until it is in effect", () => {
    change(add(4), remove(1));
    expect(change(add(5), remove(2))).toMatchObject({ code: "change-under-way" });
    expect(apply(remove(2))).toMatchObject({ code: "change-under-way" });
    expect(change(add(5, false))).toEqual({ type: "done" });
  });

  test("removing a new member that never arrives cancels it, and all voters stay", () => {
    change(add(4), add(5), remove(1), remove(2));
    expect(apply(remove(4))).toEqual({ type: "done" });
    expect(wishes()).toBe("1 voter, 2 voter, 3 voter, 4 leaving, 5 voter");
    expect(follow().at(-1)).toBe("1,2,3,5 + ");
    expect(wishes()).toBe("1 voter, 2 voter, 3 voter, 5 voter");
  });

  test("the largest one fits in one log entry", () => {
    const steps = Array.from({ length: 64 }, (_, index) => ({ ...add(1e15 + index), address: "a".repeat(300) }));
    expect(hasShape(operationShape, { type: "changeMembers", steps })).toBe(true);
    expect(JSON.stringify({ type: "changeMembers", steps }).length).toBeLessThan(MAX_OPERATION_BYTES);
  });
});

test("removing a new member keeps the member that it would have replaced", () => {
  apply({ type: "addMember", member: 4, address: "10.0.0.4:7100", isVoter: true, replaces: 1 });
  expect(wishes()).toBe("1 leaving, 2 voter, 3 voter, 4 voter");
  apply(remove(4));
  expect(wishes()).toBe("1 voter, 2 voter, 3 voter, 4 leaving");
});

test("a new member that is removed before the log knows it leaves the list as well", () => {
  apply(add(4, false));
  apply(remove(4));
  expect(wishes()).toBe("1 voter, 2 voter, 3 voter, 4 leaving");
  follow();
  expect(wishes()).toBe("1 voter, 2 voter, 3 voter");
  expect(list().removed).toEqual([4]);
});

test("the only voter cannot be removed", () => {
  change(remove(1), remove(2));
  follow();
  expect(apply(remove(3))).toMatchObject({
    code: "last-voter",
    reason: "member 3 is the only voter: without it, the cluster cannot decide anything",
  });
});
