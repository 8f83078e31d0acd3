/** Checks channels between real processes that are killed, restarted, cut off, leave and come back. */
import { afterEach, describe, expect, test } from "vitest";
import type { ChannelOptions } from "../../src/cluster/services/channel-api.ts";
import { broken } from "./channel-accounts.ts";
import { type ChannelMember, ChannelMembers, latestView, together } from "./channel-members.ts";
import { until } from "./cluster-under-test.ts";

const open: ChannelMembers[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((members) => members.close()));
});

async function group(size: number, options: ChannelOptions): Promise<ChannelMembers> {
  const members = await ChannelMembers.of(size);
  open.push(members);
  await members.startAll();
  for (const id of members.ids) members.at(id).order({ do: "open", name: "room", options });
  await together(
    members.ids.map((id) => members.at(id)),
    "room",
  );
  return members;
}

const send = (member: ChannelMember, prefix: string, count: number): void =>
  member.order({ do: "send", name: "room", prefix, count });

const sentBy = (member: ChannelMember, prefix: string) => member.said("sent", (report) => report.prefix === prefix);

/**
 * Waits until the member has this many messages. A suspected member is excluded, as its views show, and its messages
 * may be lost.
 */
async function has(member: ChannelMember, count: number): Promise<void> {
  try {
    await until(`member ${member.id} has ${count}`, () => member.payloads("room").length >= count);
  } catch (error) {
    const standing = `${member.payloads("room").length} messages in ${JSON.stringify(latestView(member, "room"))}`;
    throw new Error(`${(error as Error).message}: it has ${standing}`, { cause: error });
  }
}

const wasLeftOut = (member: ChannelMember): boolean =>
  member.all("view").some(({ view, state }) => view !== null && state === "outside");

/**
 * Expects all messages in order. A member without processor time may be suspected and then need not have all of them,
 * but the other checks still apply.
 */
async function allInOrder(members: ChannelMembers, count: number): Promise<void> {
  await members.lastRound("room");
  expect(broken(members.runs, "total")).toEqual([]);
  if (members.up.some(wasLeftOut)) return;
  const sent = members.up.flatMap((member) => member.all("sent").flatMap(({ settled }) => settled));
  expect(sent.length).toBeGreaterThan(count);
  for (const member of members.up) expect(member.payloads("room")).toHaveLength(sent.length);
}

/** Waits until the messages of a member are settled, unless the others have continued without it. */
async function isSettled(member: ChannelMember, prefix: string): Promise<void> {
  const { refused } = await sentBy(member, prefix);
  if (!wasLeftOut(member)) expect(refused).toEqual([]);
}

const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix} ${index + 1}`);

test("total order: all members deliver the same messages in the same order, under the same ids", async () => {
  const members = await group(3, { order: "total" });
  for (const member of members.up) members.send(member, "room", 500);
  await allInOrder(members, 1_500);
});

const overIpMulticast = "over IP multicast with a loss of %d, copies and reordering, all is delivered in order, once";
test.each([0.01, 0.1, 0.3])(overIpMulticast, { tags: ["long"] }, (rate) => allInOrderOverIpMulticast(rate));

async function allInOrderOverIpMulticast(rate: number): Promise<void> {
  const members = await group(3, { order: "total", transport: "udp" });
  members.besides = { datagrams: { dropRate: rate, duplicateRate: rate, reorderRate: rate } };
  await members.partition();
  for (let burst = 0; burst < 20; burst++) for (const member of members.up) members.send(member, "room", 50);
  await members.allMulticast("room");
  await allInOrder(members, 3_000);
}

describe("causal", () => whoeverComesAndGoes("causal"));
describe("total", { tags: ["long"] }, () => whoeverComesAndGoes("total"));

function whoeverComesAndGoes(order: "causal" | "total"): void {
  test("a killed member is left out, and the others continue with the same messages", async () => {
    const members = await group(3, { order });
    const sent = members.up.map((member) => [member, members.send(member, "room", 2_000)] as const);
    await has(members.at(1), 1);
    await members.kill(3);
    await members.lastRound("room");
    expect(broken([...members.runs, { id: 3, reports: [] }], order)).toEqual([]); // Messages from 3 may stop anywhere.
    const [one, two] = members.up as [ChannelMember, ChannelMember];
    for (const [member, prefix] of sent.slice(0, 2)) await isSettled(member, prefix);
    if ([one, two].some(wasLeftOut)) return;
    const views = (each: ChannelMember) => new Set(each.all("delivered").map(({ id, view }) => `${view} ${id}`));
    expect(views(two)).toEqual(views(one));
  });

  test("a restarted member comes back and receives later messages", async () => {
    const members = await group(3, { order });
    await members.kill(2);
    await together([members.at(1), members.at(3)], "room");
    const meanwhile = members.send(members.at(1), "room", 5);
    await sentBy(members.at(1), meanwhile);
    const again = await members.start(2);
    again.order({ do: "open", name: "room", options: { order } });
    await members.lastRound("room"); // Now all three have each other's messages.
    expect(broken(members.runs, order)).toEqual([]);
    expect(again.payloads("room").filter((payload) => payload.startsWith(`${meanwhile} `))).toEqual([]);
  });

  // test/testing/swarm.test.ts contains the short version of this test and the next.
  test("a minority waits and reports it; when it is back it sends its pending messages", {
    tags: ["long"],
  }, async () => {
    const members = await group(3, { order });
    const [one, two, three] = [1, 2, 3].map((id) => members.at(id)) as [ChannelMember, ChannelMember, ChannelMember];
    await members.partition([1, 2], [3]);
    await until("3 is stalled", () => latestView(three, "room")?.state === "stalled");
    await together([one, two], "room");
    send(three, "of the minority:", 5);
    send(one, "of the majority:", 5);
    await sentBy(one, "of the majority:");
    expect(three.payloads("room")).toEqual([]);
    await members.partition();
    await together([one, two, three], "room");
    expect(await sentBy(three, "of the minority:")).toMatchObject({ refused: [] });
    const { view } = three.all("delivered").at(-1) as { view: number };
    const there = three.all("view").find((report) => report.view === view)?.members ?? [];
    for (const id of there)
      await until(
        () =>
          `member ${id}, of view ${view}, has them, too; it has been in ${JSON.stringify(members.at(id).all("view"))}`,
        () => members.at(id).payloads("room").includes("of the minority: 5"),
      );
    expect(three.payloads("room")).toEqual(numbered("of the minority:", 5));
  });

  test("a paused member learns that it was left out, and comes back", { tags: ["long"] }, async () => {
    const members = await group(3, { order });
    const [one, two, three] = [1, 2, 3].map((id) => members.at(id)) as [ChannelMember, ChannelMember, ChannelMember];
    three.process.signal("SIGSTOP");
    await together([one, two], "room");
    const meanwhile = members.send(one, "room", 5);
    await isSettled(one, meanwhile);
    three.process.signal("SIGCONT");
    await until("3 learns it", () => wasLeftOut(three));
    await members.lastRound("room"); // Now all three have each other's messages.
    expect(broken(members.runs, order)).toEqual([]);
    expect(three.payloads("room").filter((payload) => payload.startsWith(`${meanwhile} `))).toEqual([]);
  });

  test("messages of a member that leaves are delivered; then the others continue without it", async () => {
    const members = await group(3, { order });
    const [one, two, three] = [1, 2, 3].map((id) => members.at(id)) as [ChannelMember, ChannelMember, ChannelMember];
    const words = members.send(three, "room", 100);
    three.order({ do: "leave" });
    await three.said("left");
    await isSettled(three, words);
    await together([one, two], "room");
    expect(broken(members.runs, order)).toEqual([]);
    if (![one, two, three].some(wasLeftOut))
      for (const each of [one, two]) expect(each.payloads("room")).toEqual(numbered(words, 100));
    three.process.end();
    expect(await three.process.exited).toBe(0);
  });
}
