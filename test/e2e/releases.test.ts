/**
 * Members of one release beside those of another, as in a rolling restart.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, together } from "./channel-members.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";
import { folder, isGrowing, Joined, joinedAt, numbersIn, place } from "./joined-members.ts";
import { mixes, previousRelease, type Release } from "./previous-release.ts";

let built: Release | null = null;

/** Is built once. */
function previous(): Release | null {
  built ??= previousRelease(folder);
  return built;
}

const entriesIn = (witness: string): number => (existsSync(`${witness}.log`) ? numbersIn(`${witness}.log`).length : 0);

/** Others get in, some times more. */
async function isPassedOn(witness: string): Promise<void> {
  const before = entriesIn(witness);
  await until("the lock is passed on", () => entriesIn(witness) > before + 20);
}

/** Restarts each member as one of that release, while all others go on entering. */
async function restartAll(members: Joined[], restart: (id: number) => Joined, witness: string): Promise<void> {
  for (const [index, old] of members.entries()) {
    old.order({ do: "rest" });
    await old.said("contended");
    old.order({ do: "leave" });
    await old.said("left");
    old.end();
    await old.exited;
    await isPassedOn(witness);
    const next = restart(old.id);
    members[index] = next;
    await next.said("joined");
    next.order({ do: "contend", entries: "many", witness });
    await isPassedOn(witness);
  }
}

test("from the commit before this one to this one, member by member: the lock is passed on all the time", async (context) => {
  const before = previous();
  if (before === null) return context.skip("there is no commit before this one here");
  const where = await place(3);
  const witness = join(folder, "rolling");
  const members = await joinedAt(where, before.packageUrl);
  for (const member of members) member.order({ do: "contend", entries: "many", witness });
  await isPassedOn(witness);
  // A new wire version cannot be mixed in one by one: the others refuse it, and go on.
  if (!mixes(before)) return expectRefused(members, (id) => new Joined(id, where), witness);
  await restartAll(members, (id) => new Joined(id, where), witness);
  for (const member of members) member.order({ do: "rest" });
  await Promise.all(members.map((member) => member.said("contended")));
  expect(isGrowing(numbersIn(`${witness}.log`))).toBe(true);
});

test.for([
  ["the commit before this one", "this one", (id: number) => id === 1],
  ["this one", "the commit before this one", (id: number) => id !== 1],
] as const)(
  "a channel whose lowest member is of %s, the others of %s, and each starts again as this one: all have the same in the same order",
  async ([, , isOld], context) => {
    const before = previous();
    if (before === null || !mixes(before)) return context.skip("there is no commit before this one that mixes with it");
    const members = await ChannelMembers.of(3);
    onTestFinished(() => members.close());
    await Promise.all(members.ids.map((id) => open(members, id, isOld(id) ? before.packageUrl : PACKAGE)));
    await exchange(members);
    for (const id of members.ids) {
      for (const member of members.up) members.send(member, "room", 100);
      members.at(id).order({ do: "leave" });
      await members.at(id).said("left");
      await open(members, id); // Going back to an earlier release is not promised.
      await exchange(members);
    }
  },
);

async function open(members: ChannelMembers, id: number, packageUrl = PACKAGE): Promise<void> {
  const member = await members.start(id, packageUrl);
  member.order({ do: "open", name: "room", options: { order: "total" } });
}

/** All send much at once. A machine that gives a member no time lets it be left out: then it need not have all; the rest holds. */
async function exchange(members: ChannelMembers): Promise<void> {
  const { up } = members;
  expect(up).toHaveLength(3);
  await together(up, "room");
  const bursts = up.map((member) => members.send(member, "room", 200));
  await members.lastRound("room");
  expect(broken(members.runs, "total")).toEqual([]);
  if (up.some(isLeftOut)) return;
  const had = up.map((member) => member.payloads("room").filter((payload) => bursts.includes(burstOf(payload))));
  expect(new Set(had[0]).size).toBe(600);
  expect(had).toEqual([had[0], had[0], had[0]]);
}

const burstOf = (payload: string): string => payload.slice(0, payload.lastIndexOf(" "));

const isLeftOut = (member: ChannelMember): boolean =>
  member.all("view").some(({ view, state }) => view !== null && state === "outside");

test("a clone without the commit before this one: where CI is set that is an error, elsewhere the test is skipped", () => {
  expect(() => previousRelease(folder, null, true)).toThrow(
    /^expected a commit before this one, since CI is set, got .*: fetch two commits/,
  );
  expect(previousRelease(folder, null, false)).toBe(null);
});

async function expectRefused(
  members: readonly Joined[],
  start: (id: number) => Joined,
  witness: string,
): Promise<void> {
  const [old] = members as [Joined];
  old.order({ do: "rest" });
  await old.said("contended");
  old.order({ do: "leave" });
  await old.exited;
  const next = start(old.id);
  await until("it is told why", () => next.errors.includes("wrong-version"));
  await isPassedOn(witness);
}
