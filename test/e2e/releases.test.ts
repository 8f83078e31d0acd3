/**
 * Members of one release beside those of another, as in a rolling restart.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "./cluster-under-test.ts";
import { folder, isGrowing, Joined, joinedAt, numbersIn, place } from "./joined-members.ts";
import { changedRelease, mixes, previousRelease } from "./previous-release.ts";

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
    next.order({ do: "contend", algorithm: "elected-server", entries: "many", witness });
    await isPassedOn(witness);
  }
}

test("from the commit before this one to this one, member by member: the lock is passed on all the time", async (context) => {
  const previous = previousRelease(folder);
  if (previous === null) return context.skip("there is no commit before this one here");
  const where = await place(3);
  const witness = join(folder, "rolling");
  const members = await joinedAt(where, previous.packageUrl);
  for (const member of members) member.order({ do: "contend", algorithm: "elected-server", entries: "many", witness });
  await isPassedOn(witness);
  // A new wire version cannot be mixed in one by one: the others refuse it, and go on.
  if (!mixes(previous)) return expectRefused(members, (id) => new Joined(id, where), witness);
  await restartAll(members, (id) => new Joined(id, where), witness);
  for (const member of members) member.order({ do: "rest" });
  await Promise.all(members.map((member) => member.said("contended")));
  expect(isGrowing(numbersIn(`${witness}.log`))).toBe(true);
});

test("a clone without the commit before this one: where CI is set that is an error, elsewhere the test is skipped", () => {
  expect(() => previousRelease(folder, null, "true")).toThrow(
    /^expected a commit before this one, since CI is set, got .*: fetch two commits/,
  );
  expect(previousRelease(folder, null, undefined)).toBe(null);
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

test("a release in which one algorithm's messages differ shares all names that do not use it", async () => {
  const later = changedRelease(folder, "src/protocols/mutex/central-server.ts", (source) =>
    source.replaceAll(/\brelease\b/g, "giveBack"),
  );
  const where = await place(3);
  const members = [1, 2, 3].map((id) => new Joined(id, where, id === 3 ? later.packageUrl : undefined));
  await Promise.all(members.map((member) => member.said("joined")));
  const witness = join(folder, "mixed");
  for (const member of members) member.order({ do: "contend", algorithm: "elected-server", entries: 20, witness });
  await Promise.all(members.map((member) => member.said("contended")));
  expect(isGrowing(numbersIn(`${witness}.log`))).toBe(true);
  const [one, two, three] = members as [Joined, Joined, Joined];
  const textbook = {
    do: "contend",
    algorithm: "central-server",
    entries: 5,
    witness: join(folder, "textbook"),
  } as const;
  for (const member of [one, two]) member.order(textbook);
  await until("both have been in five times", () =>
    [one, two].every((member) => member.saidAlready("contended").length === 2),
  );
  three.order(textbook);
  expect((await three.said("refused")).why).toContain("another release's");
  for (const member of [one, two]) member.order(textbook);
  await until("both go on", () => [one, two].every((member) => member.saidAlready("contended").length === 3));
});
