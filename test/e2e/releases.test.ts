/**
 * Runs members of this release together with members of a later one that supports wire versions 1 and 2.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, together } from "./channel-members.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";
import { folder, isGrowing, Joined, joinedAt, numbersIn, place } from "./joined-members.ts";
import { buildLaterRelease } from "./later-release.ts";

let later: string;
beforeAll(() => {
  later = buildLaterRelease(folder).packageUrl;
}, 300_000);

const entriesIn = (witness: string): number => (existsSync(`${witness}.log`) ? numbersIn(`${witness}.log`).length : 0);

/** Resolves after members have acquired the lock 20 more times. */
async function isPassedOn(witness: string): Promise<void> {
  const before = entriesIn(witness);
  await until("the lock is passed on", () => entriesIn(witness) > before + 20);
}

test("members are upgraded one by one while the others pass a lock on", async () => {
  const where = await place(3);
  const witness = join(folder, "rolling");
  const contend = { do: "contend", entries: "many", witness } as const;
  const members = await joinedAt(where);
  for (const member of members) member.order(contend);
  await isPassedOn(witness);
  for (const [index, old] of members.entries()) {
    old.order({ do: "rest" });
    await old.said("contended");
    old.order({ do: "leave" });
    await old.said("left");
    old.end();
    await old.exited;
    await isPassedOn(witness);
    const next = new Joined(old.id, where, later);
    members[index] = next;
    await next.said("joined");
    next.order(contend);
    await isPassedOn(witness);
  }
  for (const member of members) member.order({ do: "rest" });
  await Promise.all(members.map((member) => member.said("contended")));
  expect(isGrowing(numbersIn(`${witness}.log`))).toBe(true);
});

test.for([
  ["this release", "the later one", (id: number) => id === 1],
  ["the later release", "this one", (id: number) => id !== 1],
] as const)(
  "a channel whose lowest member is of %s, the others of %s, delivers the same in the same order while all are upgraded",
  async ([, , isOld]) => {
    const members = await ChannelMembers.of(3);
    onTestFinished(() => members.close());
    await Promise.all(members.ids.map((id) => open(members, id, isOld(id) ? PACKAGE : later)));
    await exchange(members);
    for (const id of members.ids) {
      for (const member of members.up) members.send(member, "room", 100);
      members.at(id).order({ do: "leave" });
      await members.at(id).said("left");
      await open(members, id, later);
      await exchange(members);
    }
  },
);

async function open(members: ChannelMembers, id: number, packageUrl: string): Promise<void> {
  const member = await members.start(id, packageUrl);
  member.order({ do: "open", name: "room", options: { order: "total" } });
}

/**
 * Makes all members send at once. A member without processor time may be excluded from the view and then need not have
 * all messages.
 */
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
