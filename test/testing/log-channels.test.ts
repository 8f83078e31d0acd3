/**
 * Checks channels on the replicated log. All members take part, not only founders. A member that reads with a state
 * receives the state as of one position in the order, and then all later messages.
 */
import { describe, expect, it } from "vitest";
import type { Channel, ChannelView, Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const LOG = { order: "total", transport: "log" } as const;

const room = (member: Member): Channel<string> => member.channel<string>("room", LOG);

/** Keeps `line` equal to the state that a member replicates: received states, and messages after them. */
async function keep(member: Member, line: string[]): Promise<void> {
  for await (const said of room(member).read<string[]>({ state: () => line })) {
    if ("state" in said) line.splice(0, line.length, ...said.state);
    else line.push(said.payload);
  }
}

/** Returns the state that a program at that member replicates: all messages. */
function kept(world: World, id: number): string[] {
  const line: string[] = [];
  void untilRemoved(keep(world.member(id), line));
  return line;
}

/** Expects readers of a removed member to reject with that reason. */
const untilRemoved = (reading: Promise<void>): Promise<void> =>
  reading.catch((error: unknown) => expect(error).toMatchObject({ code: "member-removed" }));

/** Returns the number of messages, and of states received. */
function counted(world: World, id: number): { count: number; states: number } {
  const sum = { count: 0, states: 0 };
  void (async () => {
    for await (const said of room(world.member(id)).read<number>({ state: () => sum.count })) {
      if ("state" in said) Object.assign(sum, { count: said.state, states: sum.states + 1 });
      else sum.count += 1;
    }
  })();
  return sum;
}

function viewsOf(channel: Channel<string>): ChannelView[] {
  const views: ChannelView[] = [];
  const follow = async (): Promise<void> => {
    for await (const view of channel.views()) views.push(view);
  };
  void untilRemoved(follow());
  return views;
}

async function until(isTrue: () => boolean, sleep: (ms: number) => Promise<void>): Promise<void> {
  while (!isTrue()) await sleep(20);
}

/** Waits until all three members are in the group and it has a state. No state then contains earlier messages. */
async function settled(world: World): Promise<void> {
  const views = viewsOf(room(world.member(1)));
  await until(() => views.at(-1)?.members.length === 3, world.sleep);
  await world.sleep(1_000);
}

describe("a channel on the log", () => {
  it("delivers the same messages to all members, in one order", async () => {
    const world = simulate({ members: 3, seed: 1 });
    await world.run(async () => {
      const members = [1, 2, 3].map((id) => world.member(id));
      const lines = members.map(() => [] as string[]);
      members.forEach((member, at) => void keep(member, lines[at] as string[]));
      await settled(world);
      const sent = await Promise.all(
        members.flatMap((member) => [1, 2].map((n) => room(member).send(`${member.id} ${n}`))),
      );
      expect(new Set(sent.map(({ id }) => id)).size).toBe(6);
      await until(() => lines.every((line) => line.length === 6), world.sleep);
      for (const line of lines) expect(line).toEqual(lines[0]);
    });
  });

  it("includes a member that is added: it receives the state, and then the later messages", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      const lines = new Map<number, string[]>([1, 2, 3, 4].map((id) => [id, []]));
      for (const id of [1, 2, 3]) void untilRemoved(keep(world.member(id), lines.get(id) as string[]));
      await settled(world);
      await room(world.member(1)).send("before");
      const fourth = await world.add(4);
      void keep(fourth, lines.get(4) as string[]);
      await room(world.member(2)).send("meanwhile");
      await room(fourth).send("from the fourth");
      await world.member(1).cluster.settled();
      await world.member(2).cluster.remove(1);
      await room(world.member(3)).send("after the first has gone");
      await until(() => [2, 3, 4].every((id) => lines.get(id)?.length === 4), world.sleep);
      for (const id of [3, 4]) expect(lines.get(id)).toEqual(lines.get(2));
    });
  });

  it("does not wait for a paused member: it leaves the group when its session expires, and catches up by a state", async () => {
    const world = simulate({ members: 3, seed: 3 });
    await world.run(async () => {
      const lines = [1, 2, 3].map((id) => kept(world, id));
      await settled(world);
      const views = viewsOf(room(world.member(1)));
      await room(world.member(1)).send("all are there");
      await until(() => views.at(-1)?.members.length === 3, world.sleep);
      world.pause(3);
      const began = world.now();
      await room(world.member(1)).send("two are there");
      expect(world.now() - began).toBeLessThan(500);
      await until(() => views.at(-1)?.members.join() === "1,2", world.sleep);
      expect(world.now() - began).toBeLessThan(10_000);
      world.resume(3);
      await until(() => views.at(-1)?.members.length === 3, world.sleep);
      await room(world.member(3)).send("all are back");
      await until(() => lines.every((line) => line.at(-1) === "all are back"), world.sleep);
      for (const line of lines) expect(line).toEqual(["all are there", "two are there", "all are back"]);
    });
  });

  it("a minority waits, and sends its pending messages once the partition heals", async () => {
    const world = simulate({ members: 3, seed: 4 });
    await world.run(async () => {
      const lines = [1, 2, 3].map((id) => kept(world, id));
      await settled(world);
      const states = viewsOf(room(world.member(3)));
      await room(world.member(3)).send("before");
      await until(() => lines.every((line) => line.length === 1), world.sleep);
      world.partition([1, 2], [3]);
      await until(() => states.at(-1)?.state === "stalled", world.sleep);
      const late = room(world.member(3)).send("from the minority");
      await room(world.member(1)).send("from the majority");
      expect(lines[2]).toEqual(["before"]);
      world.heal();
      await late;
      await until(() => lines.every((line) => line.length === 3), world.sleep);
      for (const line of lines) expect(line).toEqual(["before", "from the majority", "from the minority"]);
    });
  });

  it("a member that skipped messages because of a snapshot joins again, and receives the state", async () => {
    const world = simulate({ members: 3, seed: 5 });
    await world.run(async () => {
      const counts = [1, 2, 3].map((id) => counted(world, id));
      await settled(world);
      const states = viewsOf(room(world.member(3)));
      await room(world.member(3)).send("before");
      await until(() => counts.every(({ count }) => count === 1), world.sleep);
      Object.assign(counts[2] as object, { states: 0 });
      world.partition([1, 2], [3]);
      const text = "x".repeat(50_000);
      for (let n = 0; n < 120; n++) await room(world.member(1)).send(text); // More than the log retains.
      world.heal();
      await until(() => counts[2]?.states === 1 && counts[2].count === 121, world.sleep);
      expect(states.map(({ state }) => state)).toContain("outside");
      await room(world.member(3)).send("after");
      await until(() => counts.every(({ count }) => count === 122), world.sleep);
    });
  });

  it("loses a member that closes it after a while, and one that leaves at once, and can be opened again", async () => {
    const world = simulate({ members: 3, seed: 6 });
    await world.run(async () => {
      const [first, second, third] = [1, 2, 3].map((id) => room(world.member(id)));
      const views = viewsOf(first as Channel<string>);
      await until(() => views.at(-1)?.members.length === 3, world.sleep);
      await second?.close();
      await world.sleep(30_000);
      expect(views.at(-1)?.members).toEqual([1, 3]);
      await room(world.member(2)).send("here again");
      await until(() => views.at(-1)?.members.join() === "1,2,3", world.sleep);
      await expect(second?.send("closed")).rejects.toMatchObject({ code: "channel-closed", phase: "never-sent" });
      const began = world.now();
      await world.member(3).leave();
      await until(() => views.at(-1)?.members.join() === "1,2", world.sleep);
      expect(world.now() - began).toBeLessThan(1_000);
      await expect(third?.send("left")).rejects.toMatchObject({ code: "member-left", phase: "never-sent" });
    });
  });

  it("accepts payloads up to 60,000 bytes, no matter how much of them is escaped", async () => {
    const world = simulate({ members: 3, seed: 7 });
    await world.run(async () => {
      const line = kept(world, 2);
      await room(world.member(2)).send("first");
      const quotes = '"'.repeat(29_999);
      await room(world.member(1)).send(quotes);
      await until(() => line.length === 2, world.sleep);
      expect(line[1]).toBe(quotes);
      await expect(room(world.member(1)).send(`"${quotes}`)).rejects.toMatchObject({ code: "payload-too-large" });
    });
  });
});
