/**
 * Checks admission: members must have the same list, and the journals that the other members have on record for them.
 */

import { describe, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { NodeId } from "../../core/protocol.ts";
import { groupMemory } from "../journal/group-memory.ts";
import { createLog } from "../log.ts";
import { realPlatform } from "../platform/real.ts";
import { GroupIdentity } from "./identity.ts";

type Kept = Map<string, unknown[]>;

/** Creates a member that starts with this folder. */
async function member(self: NodeId, members: readonly NodeId[], folder: Kept | null, isNewcomer = false) {
  const lines: string[] = [];
  const [journal, told] = [folder && memoryJournal(folder), { isNewcomer }];
  const memory = journal && (await groupMemory(journal, members, `journal-${self}`, realPlatform.random, told));
  const log = createLog((_level, line) => lines.push(line));
  const identity = new GroupIdentity({ self, members, isNewcomer, takesNewcomers: true, log, memory });
  return { self, identity, lines };
}
type Member = Awaited<ReturnType<typeof member>>;

/** Makes one member call another. Returns the other's objection. */
const call = (from: Member, to: Member): string | null =>
  to.identity.judge(from.self, from.identity.toward(to.self))?.reason ?? null;

/** Makes all members call each other until their records are durable. */
async function meet(...members: Member[]): Promise<void> {
  for (const from of members) for (const to of members) if (from !== to) call(from, to);
  await new Promise((resolve) => setTimeout(resolve));
}

/** Creates three members that have met, and their folders. */
async function founded() {
  const folders: [Kept, Kept, Kept] = [new Map(), new Map(), new Map()];
  const start = (id: 1 | 2 | 3): Promise<Member> => member(id, [1, 2, 3], folders[id - 1] as Kept);
  const members = [await start(1), await start(2), await start(3)] as const;
  await meet(...members);
  return { folders, start, members };
}

const REMEDY =
  "Stop it and restore its folder. If the folder is lost, make a new one with `coterie member replace`. If the cluster was restored from a snapshot, the folder belongs to the old cluster: docs/operate/recovery.md";
const PROMISED = "it has lost its promises and must not take part";

describe("a group that starts for the first time", () => {
  test("admits none until all members have met, and then all of them", async () => {
    const folders: Kept[] = [new Map(), new Map(), new Map()];
    const [one, two, three] = await Promise.all(folders.map((folder, i) => member(i + 1, [1, 2, 3], folder)));
    if (one === undefined || two === undefined || three === undefined) throw new Error("there are three");
    await meet(one, two);
    expect([call(one, two), call(two, one), call(one, three)]).toEqual(["not-founded", "not-founded", "not-founded"]);
    expect([one.identity.awaited, two.identity.isFounded]).toEqual([[3], false]);
    one.identity.sayAwaited();
    expect(one.lines).toEqual([
      "waiting for node 3: all members must be running when a cluster starts for the first time; after that, a majority is enough",
    ]);
    await meet(one, two, three);
    expect([call(one, two), call(two, one), call(one, three), call(three, two)]).toEqual([null, null, null, null]);
    expect(one.identity.awaited).toEqual([]);
  });

  test("continues if members crash while they meet", async () => {
    const folders: [Kept, Kept] = [new Map(), new Map()];
    const first = await member(1, [1, 2], folders[0]);
    const second = await member(2, [1, 2], folders[1]);
    call(second, first); // The first member founds the group before the second one knows about it.
    await vi.waitFor(() => expect(first.identity.isFounded).toBe(true), PATIENCE);
    const [again, andAgain] = [await member(1, [1, 2], folders[0]), await member(2, [1, 2], folders[1])];
    expect([again.identity.isFounded, andAgain.identity.isFounded]).toEqual([true, false]);
    await meet(again, andAgain);
    expect([call(again, andAgain), call(andAgain, again)]).toEqual([null, null]);
  });

  test("of one member waits for no others", async () => {
    const { identity } = await member(1, [1], new Map());
    await vi.waitFor(() => expect(identity.isFounded).toBe(true), PATIENCE);
  });

  test("without journals is founded immediately", async () => {
    const [one, two] = [await member(1, [1, 2, 3], null), await member(2, [1, 2, 3], null)];
    expect([call(one, two), call(two, one), one.identity.isFounded]).toEqual([null, null, true]);
  });
});

describe("a member", () => {
  test("that restarts is admitted before all others are there", async () => {
    const { start } = await founded();
    const [one, two] = [await start(1), await start(2)];
    expect([call(one, two), call(two, one)]).toEqual([null, null]);
  });

  test("that has lost its folder is refused by all, and each logs it", async () => {
    const { folders, start } = await founded();
    folders[1].clear();
    const [one, two, three] = [await start(1), await start(2), await start(3)];
    expect([call(two, one), call(two, three), call(one, two)]).toEqual([
      "lost-journal",
      "lost-journal",
      "lost-journal",
    ]);
    expect(one.lines).toEqual([
      `lost-journal: node 2 has a new journal, but this node remembers another: ${PROMISED}. ${REMEDY}`,
    ]);
    expect(two.lines).toEqual([
      `lost-journal: this node has a new journal, but node 1 remembers another: ${PROMISED}. ${REMEDY}`,
    ]);
    expect(call(one, three)).toBeNull();
    for (const each of [one, two, three]) each.identity.sayAwaited(); // No member mistakes this for a first start.
    expect([one, two, three].map(({ lines }) => lines.length)).toEqual([1, 1, 1]);
    expect(two.identity.obstacle).toBe(two.lines[0]);
    expect(await start(3).then(({ identity }) => identity.obstacle)).toBeNull();
  });

  test("that has lost its folder finds no majority of others that have, too: one that has not is enough", async () => {
    const { folders, start } = await founded();
    folders[1].clear();
    folders[2].clear();
    const [one, two, three] = [await start(1), await start(2), await start(3)];
    await meet(one, two, three);
    await meet(one, two, three);
    expect([call(two, one), call(three, one), call(one, two)]).toEqual([
      "lost-journal",
      "lost-journal",
      "lost-journal",
    ]);
    expect([call(two, three), call(three, two), two.identity.isFounded]).toEqual(["not-founded", "not-founded", false]);
  });

  test("whose folder is restored is admitted again, which is logged", async () => {
    const { folders, start } = await founded();
    const kept = new Map(folders[1]);
    const one = await start(1);
    const told: unknown[] = [];
    one.identity.onDisagreement = (node, found) => told.push([node, found?.reason ?? null]);
    folders[1].clear();
    call(await start(2), one);
    for (const [name, records] of kept) folders[1].set(name, records);
    expect(call(await start(2), one)).toBeNull();
    expect(told).toEqual([
      [2, "lost-journal"],
      [2, null],
    ]);
  });

  test("with a different list is refused in both directions, and both log the two lists", async () => {
    const { members } = await founded();
    const five = await member(4, [1, 2, 3, 4, 5], new Map());
    const remedy = (newcomer: string): string =>
      `they will have no link until both are started with the same list. If ${newcomer} should join a running cluster, empty its folder and start it with existing: true (--existing)`;
    expect([call(five, members[0]), call(members[0], five)]).toEqual(["wrong-members", "wrong-members"]);
    expect(members[0].lines).toEqual([
      `wrong-members: node 4 has the members 1, 2, 3, 4, 5, but this node has 1, 2, 3: ${remedy("node 4")}`,
    ]);
    expect(five.lines).toEqual([
      `wrong-members: node 1 has the members 1, 2, 3, but this node has 1, 2, 3, 4, 5: ${remedy("this node")}`,
    ]);
  });

  test("with a different list is advised to empty no folder if both groups are founded, or neither is", async () => {
    const { members } = await founded();
    const [three, four] = [await member(3, [3, 4], new Map()), await member(4, [3, 4], new Map())];
    call(three, await member(1, [1, 2, 3], new Map()));
    const early = await member(2, [1, 2, 3], new Map());
    call(four, early);
    await meet(three, four);
    expect(call(four, members[0])).toBe("wrong-members");
    for (const { lines } of [early, members[0]])
      expect(lines).toEqual([expect.stringMatching(/are started with the same list$/)]);
  });

  test("does not start with a different list than in its journal, even before its group was founded", async () => {
    const folder: Kept = new Map();
    await member(3, [1, 2, 3], folder);
    await expect(member(3, [5, 4, 3], folder)).rejects.toMatchObject({
      code: "wrong-members",
      message:
        "expected the members 1, 2, 3, as recorded in the journal in journal-3, got 3, 4, 5: start this member with the recorded list, because with a different list it could vote in two majorities. If the list changed while the member was down, start it once with the recorded list: it learns about the change from the other members",
    });
    await expect(member(3, [3, 2, 1], folder)).resolves.toMatchObject({ self: 3 });
  });

  test("of two lists that share a member, at most one becomes a group", async () => {
    const shared: Kept = new Map();
    const [one, two, three] = [
      await member(1, [1, 2, 3], new Map()),
      await member(2, [1, 2, 3], new Map()),
      await member(3, [1, 2, 3], shared),
    ];
    const [four, five] = [await member(4, [3, 4, 5], new Map()), await member(5, [3, 4, 5], new Map())];
    await meet(one, two, three, four, five);
    expect([one, two, three, four, five].map(({ identity }) => identity.isFounded)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(four.identity.awaited).toEqual([3]);
  });
});

describe("a newcomer that is on no list yet", () => {
  const agreed = { founders: [1, 2, 3], members: [1, 2, 3, 4].map((id) => ({ member: id, journal: "" })), removed: [] };

  test("waits for the members that it calls, and explains what to do without a cluster; on a list it does not wait", async () => {
    const four = await member(4, [1, 2, 4], new Map(), true);
    expect(four.identity.awaited).toEqual([1, 2]);
    four.identity.sayAwaited();
    expect(four.lines).toEqual([
      "waiting to be added to the member list of nodes 1, 2, because it was started with existing: true (--existing). If all members are starting for the first time, no cluster can be founded this way: stop them, empty their folders and start them without existing",
    ]);
    four.identity.learn(agreed);
    four.identity.sayAwaited();
    expect([four.identity.awaited, four.lines.length]).toEqual([[], 1]);
  });

  test("reports that it is on no list if the members that it calls are not founded yet", async () => {
    const [one, three] = [await member(1, [1, 2, 3], new Map()), await member(3, [1, 2, 3], new Map(), true)];
    expect(call(one, three)).toBe("wrong-members");
    expect(three.lines).toEqual([
      "wrong-members: node 1 has the members 1, 2, 3, but this node has no list yet: they will have no link until that group has been founded",
    ]);
  });

  test("learns from a member that does not list it that it is on no list", async () => {
    const [one, nine] = [await member(1, [1, 2, 3], new Map()), await member(9, [1, 9], new Map(), true)];
    expect(call(nine, one)).toBe("wrong-members");
    expect(one.lines).toEqual([
      "wrong-members: node 9 has no list yet, but this node has 1, 2, 3: they will have no link until it is on that list",
    ]);
  });

  test("does not start with a folder that was created to found a cluster, unless that was founded", async () => {
    const folder: Kept = new Map();
    await member(4, [1, 2, 3, 4], folder);
    await expect(member(4, [1, 4], folder, true)).rejects.toMatchObject({
      code: "wrong-members",
      message:
        "expected a folder that is empty or belongs to a cluster, because this member is started with existing: true (--existing), got journal-4, which was meant to found a cluster with the members 1, 2, 3, 4 but has not done so: to join a running cluster, empty the folder; to found one, start the member without existing",
    });
    const { folders } = await founded();
    await expect(member(2, [1, 2, 3], folders[1], true)).resolves.toMatchObject({ self: 2 });
    const alone: Kept = new Map();
    await member(1, [1], alone);
    await expect(member(1, [1], alone, true)).resolves.toMatchObject({ self: 1 });
    const newcomer: Kept = new Map();
    await member(4, [1, 4], newcomer, true);
    await expect(member(4, [2, 4], newcomer, true)).resolves.toMatchObject({ self: 4 });
  });
});

describe("a newcomer that has read only earlier lists", () => {
  async function newcomer(self: NodeId, journals: Readonly<Record<NodeId, string>>) {
    const memory = await groupMemory(memoryJournal(new Map()), [], `journal-${self}`, realPlatform.random);
    const identity = new GroupIdentity({
      self,
      members: [2, self],
      isNewcomer: true,
      log: createLog(() => {}),
      memory,
    });
    const members = Object.entries(journals).map(([id, journal]) => ({ member: Number(id), journal }));
    identity.learn({ founders: [1, 2, 3], members, removed: [] });
    return { self, identity, lines: [] };
  }

  test("admits a node that knows its journal, since the leader may be one that it does not know yet", async () => {
    const five = await newcomer(5, { 1: "one", 2: "two", 3: "three", 4: "" });
    const own = five.identity.toward(4).journal;
    const four = await newcomer(4, { 2: "two", 3: "three", 5: own });
    expect(call(four, five)).toBeNull();
  });

  test("but refuses a node that does not know it, which may have lost its journal", async () => {
    const five = await newcomer(5, { 1: "one", 2: "two", 3: "three", 4: "" });
    expect(call(await newcomer(4, { 2: "two", 3: "three" }), five)).toBe("not-founded");
  });
});

describe("any number of nodes with made-up ids", () => {
  const STRANGERS = 128;
  const stranger = { group: "1, 9", journal: "", isFounded: false, remembers: "" };

  test("do not hide a member's problem, in the status or in the log", async () => {
    const { folders, start } = await founded();
    folders[1].clear();
    const one = await start(1);
    for (let node = 1_000; node < 4_000; node += 1) one.identity.judge(node, stranger);
    expect(call(await start(2), one)).toBe("lost-journal");
    expect(one.identity.disagreements.get(2)?.reason).toBe("lost-journal");
    expect(one.lines.at(-1)).toContain("lost-journal: node 2 has a new journal");
    for (let node = 4_000; node < 5_000; node += 1) one.identity.judge(node, stranger);
    expect(one.identity.disagreements.get(2)?.reason).toBe("lost-journal");
  });

  test("are remembered up to a limit, the latest of them", async () => {
    const one = await member(1, [1, 2, 3], null);
    for (let node = 1_000; node < 1_000 + STRANGERS; node += 1) one.identity.judge(node, stranger);
    one.identity.judge(1_000, stranger);
    one.identity.judge(5_000, stranger);
    const { disagreements } = one.identity;
    expect(disagreements.size).toBe(STRANGERS);
    expect([1_000, 1_001, 5_000].map((node) => disagreements.has(node))).toEqual([true, false, true]);
  });
});

test("a very long list has a text of bounded length that still distinguishes lists", () => {
  const ids = Array.from({ length: 128 }, (_, index) => 2 ** 52 + index);
  const identityOf = (members: readonly NodeId[]) =>
    new GroupIdentity({ self: members[0] as NodeId, members, log: createLog(() => {}) }).group;
  expect(Buffer.byteLength(identityOf(ids))).toBeLessThanOrEqual(480);
  expect(identityOf(ids)).not.toBe(identityOf([...ids.slice(0, -1), 7 + 2 ** 52 + 128]));
  expect(identityOf(ids)).toBe(identityOf([...ids].reverse()));
});
