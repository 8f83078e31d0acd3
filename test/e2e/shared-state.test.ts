/**
 * Checks the shared state of members on real processes. The leader of the log, and then all members, are killed with
 * `kill -9`. No acknowledged write may be lost.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "./cluster-under-test.ts";
import { folder, Joined, joinedAt, type Place, place } from "./joined-members.ts";

const acknowledged = (file: string): string[] => {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
};

const grownTo = (file: string, count: number): Promise<boolean> =>
  until(
    () => `${count} writes are acknowledged, and ${acknowledged(file).length} were`,
    () => (acknowledged(file).length >= count ? true : null),
  );

async function logLeader(members: readonly Joined[]): Promise<Joined> {
  return until("one leads the log", () => {
    for (const member of members) member.order({ do: "status" });
    const known = members.map((member) => member.saidAlready("status").at(-1)?.leader ?? null);
    const [leader] = known;
    if (leader === undefined || leader === null || known.some((each) => each !== leader)) return null;
    return members.find(({ id }) => id === leader) ?? null;
  });
}

async function keysAt(member: Joined): Promise<string[]> {
  const before = member.saidAlready("range").length;
  member.order({ do: "range" });
  const said = await until(
    `member ${member.id} reports the entries of the map`,
    () => member.saidAlready("range")[before] ?? null,
  );
  return said.keys;
}

async function ledgerAt(member: Joined): Promise<string[]> {
  member.order({ do: "ledger" });
  return (await member.said("ledger")).words;
}

/** Whether a line `PLACE WORD` is in the list. */
function isPlaceOf(words: readonly string[], line: string): boolean {
  const [place = "", ...word] = line.split(" ");
  return words[Number(place) - 1] === word.join(" ");
}

test("the leader of the log is killed, then all members: acknowledged writes are there, and a watch reports them once, in order", async () => {
  const where: Place = await place(3);
  const members = await joinedAt(where);
  const files = new Map(members.map((member) => [member.id, join(folder, `acknowledged-${member.id}`)]));
  const fileOf = ({ id }: Joined): string => files.get(id) as string;
  for (const member of members) member.order({ do: "put", key: `of ${member.id}`, file: fileOf(member) });
  for (const member of members) await grownTo(fileOf(member), 20);
  const leader = await logLeader(members);
  leader.signal("SIGKILL");
  const others = members.filter((member) => member !== leader);
  for (const member of others) await grownTo(fileOf(member), acknowledged(fileOf(member)).length + 20);

  for (const member of others) member.signal("SIGKILL");
  await Promise.all(members.map(({ exited }) => exited));
  const promised = [...files.values()].flatMap(acknowledged);
  const again = await joinedAt(where);
  const [first, second] = again as [Joined, Joined, Joined];
  const keys = await keysAt(first);
  expect(promised.filter((key) => !keys.includes(key))).toEqual([]);

  second.order({ do: "watch", after: 0 });
  await until(
    () => `the watch reports all ${keys.length} keys, and it reported ${second.saidAlready("change").length}`,
    () => (second.saidAlready("change").length >= keys.length ? true : null),
  );
  const told = second.saidAlready("change");
  expect(told.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
  expect(told.map((change) => change.revision)).toEqual(
    told.map((change) => change.revision).toSorted((a, b) => a - b),
  );
});

test("a state machine of the caller: its leader is killed and restarted, then all are: one state at all members, with every acknowledged command", {
  tags: ["long"],
}, async () => {
  const where = await place(3);
  const members = await joinedAt(where);
  const files: string[] = [];
  const record = async (member: Joined, key: string): Promise<string> => {
    const file = join(folder, `recorded-${key}`);
    files.push(file);
    member.order({ do: "record", key, file });
    await grownTo(file, 20);
    return file;
  };
  const fileOf = new Map(
    await Promise.all(members.map(async (each) => [each, await record(each, `${each.id}`)] as const)),
  );
  const leader = await logLeader(members);
  leader.signal("SIGKILL");
  await leader.exited;
  const others = members.filter((member) => member !== leader);
  for (const file of others.map((each) => fileOf.get(each) as string))
    await grownTo(file, acknowledged(file).length + 20);
  const back = new Joined(leader.id, where);
  await back.said("joined");
  await record(back, `${leader.id} again`);

  const all = [...others, back];
  for (const member of all) member.order({ do: "rest" });
  await Promise.all(all.map((member) => member.said("recorded")));
  const states = await Promise.all(all.map(ledgerAt));
  const [words = []] = states;
  expect(states).toEqual([words, words, words]);
  expect(new Set(words).size).toBe(words.length);
  const promised = files.flatMap(acknowledged);
  expect(promised.filter((line) => !isPlaceOf(words, line))).toEqual([]);
  expect(promised.length).toBeGreaterThanOrEqual(120);

  for (const member of all) member.signal("SIGKILL");
  await Promise.all(all.map(({ exited }) => exited));
  expect(await Promise.all((await joinedAt(where)).map(ledgerAt))).toEqual(states);
});

test("members without a majority report that, and continue when there is one", async () => {
  const where = await place(3);
  const members = await joinedAt(where);
  const [one, two, three] = members as [Joined, Joined, Joined];
  const file = join(folder, "minority");
  one.order({ do: "put", key: "minority", file });
  await grownTo(file, 5);
  // Wait until all have met. A member that has not met every other member would also wait for the third one below.
  await logLeader(members);
  for (const member of [two, three]) member.signal("SIGKILL");
  await Promise.all([two.exited, three.exited]);
  const stood = acknowledged(file).length;
  await new Joined(2, where).said("joined");
  await grownTo(file, stood + 5);
});
