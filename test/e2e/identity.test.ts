/** Checks members with different member lists, and members that have lost their journals, in real processes. */
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Coterie, PACKAGE, until } from "./cluster-under-test.ts";
import { folder, isGrowing, Joined, joinedAt, numbersIn, type Place, place } from "./joined-members.ts";

/** Long enough for an election if the nodes had a majority. */
const WOULD_BE_ELECTED_MS = 3_000;

const among = ({ members, data }: Place, ids: readonly number[]): Place => ({
  data,
  members: Object.fromEntries(ids.map((id) => [id, members[id] as string])),
});

const says = (member: Joined, text: string): Promise<true> =>
  until(
    () => `member ${member.id} says ${text}, but its errors were ${JSON.stringify(member.errors)}`,
    () => member.errors.includes(text) || null,
  );

async function statusOf(member: Joined) {
  const before = member.saidAlready("status").length;
  member.order({ do: "status" });
  return until(
    () => `member ${member.id} says how it stands`,
    () => member.saidAlready("status")[before] ?? null,
  );
}

/** Acquires the lock once, which must succeed, and returns the token. */
async function tokenOf(member: Joined): Promise<number> {
  const before = member.saidAlready("entered").length;
  member.order({ do: "enter" });
  return (
    await until(
      () => `member ${member.id} enters, but its errors were ${JSON.stringify(member.errors)}`,
      () => member.saidAlready("entered")[before] ?? null,
    )
  ).token;
}

async function stop(...members: readonly Joined[]): Promise<void> {
  for (const member of members) member.signal("SIGKILL");
  await Promise.all(members.map(({ exited }) => exited));
}

test.each([
  ["a longer one", [1, 2, 3, 4, 5]],
  ["one that overlaps", [3, 4, 5]],
])(
  "members with a different list, %s: no two grants overlap, no token is repeated, and every member reports it",
  { tags: ["long"] },
  async (_which, other) => {
    const all = await place(5);
    const witness = join(folder, `lists-${other.length}`);
    const patient = { timing: "patient" } as const; // A paused holder must keep the lock.
    const first = await joinedAt(among(all, [1, 2, 3]), PACKAGE, patient);
    const [one, two, three] = first as [Joined, Joined, Joined];
    for (const member of [one, two]) member.order({ do: "contend", entries: "many", witness });
    await until("the lock is passed on", () => existsSync(`${witness}.log`) || null);

    const [four, five] = [4, 5].map((id) => new Joined(id, among(all, other), PACKAGE, patient)) as [Joined, Joined];
    for (const member of [four, five]) {
      await member.said("joined");
      member.order({ do: "contend", entries: "many", witness });
    }
    await stop(three);
    const again = new Joined(3, among(all, other), PACKAGE, patient);
    expect(await again.exited).not.toBe(0);
    expect(again.errors).toContain("wrong-members");
    expect(again.errors).toContain(
      `expected the members 1, 2, 3, as recorded in the journal in ${join(all.data, "3")}, got`,
    );
    await sleep(WOULD_BE_ELECTED_MS);

    const theirs = other.join(", ");
    const met = other.includes(1) ? [one, two] : []; // The members in both lists.
    for (const member of met)
      await says(member, `wrong-members: node 4 has the members ${theirs}, but this node has 1, 2, 3`);
    for (const member of [four, five])
      await says(
        member,
        `wrong-members: node ${met.length > 0 ? 1 : 3} has the members 1, 2, 3, but this node has ${theirs}`,
      );
    const { hasQuorum, refusals } = await statusOf(four);
    expect(hasQuorum).toBe(false);
    expect(refusals).toContainEqual(expect.objectContaining({ reason: "wrong-members", members: "1, 2, 3" }));
    await until("1 has a majority", async () => (await statusOf(one)).hasQuorum);
    await until("locks work again", () => numbersIn(`${witness}.log`).length > 10);

    for (const member of [one, two]) member.order({ do: "rest" });
    const entered = (await Promise.all([one, two].map((member) => member.said("contended")))).flatMap(
      ({ tokens }) => tokens,
    );
    const tokens = numbersIn(`${witness}.log`);
    expect(isGrowing(tokens)).toBe(true);
    expect(entered.sort((a, b) => a - b)).toEqual(tokens); // No other member has entered.
  },
);

test("two of three folders are removed: no lock is granted, and with the folders the tokens continue", {
  tags: ["long"],
}, async () => {
  const where = await place(3);
  const members = await joinedAt(where);
  const tokens = [await tokenOf(members[0] as Joined), await tokenOf(members[1] as Joined)];
  await stop(...members);
  for (const id of [2, 3]) renameSync(join(where.data, `${id}`), join(where.data, `${id}-kept`));

  const [one, two, three] = (await joinedAt(where)) as [Joined, Joined, Joined];
  for (const member of [one, two, three]) member.order({ do: "enter" });
  await says(one, "lost-journal: node 2 has a new journal, but this node remembers another");
  await says(one, "lost-journal: node 3 has a new journal, but this node remembers another");
  for (const member of [two, three])
    await says(member, "lost-journal: this node has a new journal, but node 1 remembers another");
  await sleep(WOULD_BE_ELECTED_MS);
  for (const member of [one, two, three]) {
    expect(member.saidAlready("entered")).toEqual([]);
    expect(await statusOf(member)).toMatchObject({ hasQuorum: false });
  }

  await stop(two, three);
  for (const id of [2, 3]) {
    rmSync(join(where.data, `${id}`), { recursive: true });
    renameSync(join(where.data, `${id}-kept`), join(where.data, `${id}`));
  }
  const back = [2, 3].map((id) => new Joined(id, where));
  const first = await one.said("entered"); // Member 1 waited for the lock throughout.
  tokens.push(first.token, await tokenOf(back[0] as Joined));
  expect(isGrowing(tokens)).toBe(true);
});

// src/cluster/replace-member.test.ts contains a shorter version.
test("one of three folders is removed: the member is rejected until it is replaced, and the tokens continue", {
  tags: ["long"],
}, async () => {
  const where = await place(3);
  const members = await joinedAt(where);
  const tokens: number[] = [];
  for (const member of members) tokens.push(await tokenOf(member)); // After this, each remembers all others.
  await stop(...members);
  rmSync(join(where.data, "3"), { recursive: true });

  const [one, two, three] = (await joinedAt(where)) as [Joined, Joined, Joined];
  three.order({ do: "enter" });
  await says(three, "lost-journal: this node has a new journal, but node 1 remembers another");
  tokens.push(await tokenOf(one), await tokenOf(two));
  await stop(one);
  await sleep(WOULD_BE_ELECTED_MS);
  expect(three.saidAlready("entered")).toEqual([]);
  expect(await statusOf(two)).toMatchObject({ hasQuorum: false });
  const back = new Joined(1, where);
  tokens.push(await tokenOf(back));

  await stop(three);
  rmSync(join(where.data, "3"), { recursive: true });
  const [first = "", second = "", third = ""] = [1, 2, 3].map((id) => join(where.data, `${id}`));
  const few = await new Coterie("member", "replace", "3", "--data", third, "--from", first).finished;
  expect(few).toMatchObject({ code: 2 });
  expect(few.stderr).toContain("expected the folders of 2 of the 3 members, got the folders of 1");
  const made = await new Coterie("member", "replace", "3", "--data", third, "--from", first, second).finished;
  expect(made).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`made ${third}: start member 3 with it once`),
  });
  const replaced = new Joined(3, where);
  await replaced.said("joined");
  await stop(back); // Now a majority needs the replaced member.
  tokens.push(await tokenOf(replaced), await tokenOf(two));
  expect(isGrowing(tokens)).toBe(true);
});
