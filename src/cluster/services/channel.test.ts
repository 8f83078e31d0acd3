/** Channels of members, in virtual time. Those of datagrams are real: channel-datagrams.test.ts. */
import { describe, expect, test } from "vitest";
import { everybodyGetsEverything, joined, next } from "../../../test/services/channel-members.ts";
import { simulate, type World, type WorldOptions } from "../../testing/index.ts";
import type { Member } from "./api.ts";
import type { Channel, ChannelOptions } from "./channel-api.ts";
import { orders } from "./channel-stacks.ts";

const at = <T>(items: readonly T[], index: number): T => items[index] as T;

const FIFTY_KB = "x".repeat(50_000);
/** 20 MB of them, which is more than is kept for a reader. */
const MANY = 400;

/** Members that do this together. */
const together = (
  count: number,
  body: (members: readonly Member[], world: World) => Promise<void> | void,
  options: WorldOptions["join"] = {},
): Promise<void> =>
  simulate({ members: count, seed: 1, join: options }).run((world) =>
    body(
      world.members.map((id) => world.member(id)),
      world,
    ),
  );
const alone = (
  body: (member: Member, world: World) => Promise<void> | void,
  options?: WorldOptions["join"],
): Promise<void> => together(1, ([member], world) => body(member as Member, world), options);

describe("a causal channel", () => {
  test("brings every member's messages to every member, nothing before what it may depend on", () =>
    together(3, async (members) => {
      const rooms = members.map((member) => member.channel<string>("room", { order: "causal", reliable: false }));
      const readers = rooms.map((room) => room.read());
      await at(rooms, 0).send("question");
      const heard = await next(at(readers, 1), 1);
      expect(heard).toEqual([{ from: 1, payload: "question", id: "0.1.1.0", view: 0 }]);
      expect(await at(rooms, 1).send("answer")).toEqual({ id: "0.2.1.0", view: 0 });
      const third = await next(at(readers, 2), 2);
      expect(third.map(({ payload }) => payload)).toEqual(["question", "answer"]);
    }));
});

const kinds = orders.flatMap((order) => [false, true].map((reliable) => ({ order, reliable })));

test.each(kinds)("order $order, reliable $reliable: everybody gets everything, once", (kind) =>
  together(3, (members) => everybodyGetsEverything(members, kind)),
);

describe("what cannot be", () => {
  const withoutDataDir =
    "join() to be given a dataDir, since the views of a reliable channel are kept in a journal: or do without, with `reliable: false`";
  test.each<[object, string, string]>([
    [{}, "order", "bad-option"],
    [{ order: "random" }, "one of none, fifo, causal, total, causal-total", "bad-option"],
    [{ order: "fifo", reliable: 1 }, "true or false", "bad-option"],
    [{ order: "fifo", transport: "quic" }, "one of tcp, udp", "bad-option"],
    [{ order: "fifo", ordering: "fifo" }, "among order, reliable, transport", "bad-option"],
    [{ order: "fifo", transport: "udp" }, "join() to be given multicast", "no-multicast"],
    ...orders.map((order) => [{ order }, withoutDataDir, "no-journal"] as [object, string, string]),
  ])("%j is refused", (options, message, code) =>
    alone(
      (member) => {
        const open = (): unknown => member.channel("room", options as ChannelOptions);
        expect(open).toThrow(message);
        expect(open).toThrow(expect.objectContaining({ code }));
      },
      { dataDir: undefined },
    ),
  );

  test("another order than the one in use is refused, where it is asked for and where others use it", () =>
    together(3, async (members) => {
      const room = at(members, 0).channel("room", { order: "fifo" });
      await joined(room, 3);
      expect(() => at(members, 0).channel("room", { order: "total" })).toThrow(
        'expected the options of the channel "room" to be {"order":"fifo","reliable":true,"transport":"tcp"}, as they are in use already, got {"order":"total","reliable":true,"transport":"tcp"}',
      );
      expect(() => at(members, 1).channel("room", { order: "total" })).toThrow(
        expect.objectContaining({ code: "other-setting" }),
      );
    }));

  test("a payload is refused before anything is sent", () =>
    alone(async (member) => {
      const room = member.channel<unknown>("room", { order: "total" });
      await expect(room.send(new Date())).rejects.toMatchObject({ code: "bad-payload" });
      await expect(room.send("x".repeat(60_000))).rejects.toMatchObject({ code: "payload-too-large" });
      await expect(room.send("x", { timeout: 5 } as never)).rejects.toMatchObject({ code: "bad-option" });
      await expect(room.send("x", { timeoutMs: "5" } as never)).rejects.toMatchObject({ code: "bad-option" });
      expect(room.status).toMatchObject({ waiting: 0, inFlight: 0 });
    }));
});

describe("a use of a channel", () => {
  test("that is closed sends and reads nothing more, and touches no other", () =>
    alone(async (member) => {
      const open = (): Channel<string> => member.channel<string>("room", { order: "fifo" });
      const [closed, other] = [open(), open()];
      const readers = [closed.read(), other.read()];
      await other.send("before");
      await closed.close();
      await closed.close();
      await other.send("after");
      const heard: string[] = [];
      for await (const { payload } of at(readers, 0)) heard.push(payload);
      expect(heard).toEqual(["before"]);
      expect((await next(at(readers, 1), 2)).map(({ payload }) => payload)).toEqual(["before", "after"]);
      await expect(closed.send("late")).rejects.toMatchObject({ code: "channel-closed", phase: "never-sent" });
      for await (const { payload } of closed) heard.push(payload);
      expect(heard).toEqual(["before"]);
    }));

  test("ends when the member leaves: readers, views, and sends that wait", () =>
    together(3, async (members) => {
      const room = at(members, 0).channel<string>("room", { order: "total" });
      const views: string[] = [];
      const watching = (async () => {
        for await (const { state } of room.views()) views.push(state);
      })();
      const reading = (async () => {
        for await (const _ of room);
      })();
      await joined(room, 3);
      await at(members, 0).leave();
      await Promise.all([watching, reading]);
      expect(views.at(-1)).toBe("left");
      await expect(room.send("late")).rejects.toMatchObject({ code: "member-left", phase: "never-sent" });
    }));

  test("gets what came just before it was opened, when its member was in the group already", () =>
    together(3, async (members) => {
      const room = at(members, 0).channel<string>("room", { order: "fifo" });
      await joined(room, 3);
      await room.send("early"); // All have it.
      const late = at(members, 1).channel<string>("room", { order: "fifo" });
      expect((await next(late.read(), 1)).map(({ payload }) => payload)).toEqual(["early"]);
    }));
});

test("where no program reads, what comes is counted and dropped, and nobody waits for it", () =>
  together(3, async (members, world) => {
    const room = at(members, 0).channel<string>("room", { order: "total" });
    await joined(room, 3);
    for (let sent = 0; sent < 30; sent++) await room.send(FIFTY_KB);
    await world.sleep(11_000); // Until no program has to be waited for that might open it.
    const statusAt = (index: number) =>
      at(members, index)
        .status()
        .instances.find(({ kind }) => kind === "channel")?.channel;
    expect(statusAt(2)).toMatchObject({ delivered: 30, unread: 30, slow: [] });
    expect(statusAt(0)).toMatchObject({ delivered: 30, unread: 0, waiting: 0, inFlight: 0 });
  }));

test("a reader that cannot keep up makes the senders wait, and nothing is lost", () =>
  together(3, async (members, world) => {
    const rooms = members.map((member) => member.channel<string>("room", { order: "fifo" }));
    await Promise.all(rooms.map((room) => joined(room, 3)));
    const slow = at(rooms, 1).read();
    let settled = 0;
    const sends = Array.from({ length: 200 }, async () => {
      for (let turn = 0; turn < MANY / 200; turn++) {
        await at(rooms, 0).send(FIFTY_KB);
        settled += 1;
      }
    });
    await world.sleep(2_000);
    expect(at(rooms, 0).status.slow).toEqual([2]);
    expect(settled).toBeLessThan(MANY);
    const before = settled;
    await world.sleep(2_000);
    expect(settled).toBe(before);
    expect(await next(slow, MANY)).toHaveLength(MANY);
    await Promise.all(sends);
    expect(at(rooms, 2).status).toMatchObject({ delivered: MANY, slow: [] });
  }));

test("a program that sends more than it reads itself waits for its own reader, and misses nothing", () =>
  alone(async (member, world) => {
    const room = member.channel<string>("room", { order: "total" });
    await joined(room, 1);
    const reader = room.read();
    let settled = 0;
    const sending = (async () => {
      for (; settled < MANY; settled++) await room.send(FIFTY_KB);
    })();
    await world.sleep(2_000);
    expect(room.status.slow).toEqual([1]);
    expect(settled).toBeLessThan(MANY);
    expect(await next(reader, MANY)).toHaveLength(MANY);
    await sending;
    expect(room.status.slow).toEqual([]);
  }));

test("what members send fits the frames that they are given", () =>
  together(
    3,
    async (members) => {
      const rooms = members.map((member) => member.channel<string>("room", { order: "causal-total" }));
      await Promise.all(rooms.map((room) => joined(room, 3)));
      const reader = at(rooms, 2).read();
      await expect(at(rooms, 0).send("x".repeat(16_000))).rejects.toMatchObject({ code: "payload-too-large" });
      await Promise.all(Array.from({ length: 300 }, (_, number) => at(rooms, number % 2).send("x".repeat(500))));
      await at(rooms, 0).send("x".repeat(15_000));
      expect(await next(reader, 301)).toHaveLength(301);
    },
    { limits: { maxFrameBytes: 16_384 } },
  ));

test("the textbook's channel holds back what a member that cannot be reached has no room for, and loses nothing", () =>
  together(2, async ([one], world) => {
    world.kill(2);
    const room = (one as Member).channel<string>("room", { order: "fifo", reliable: false });
    const many = 500; // 25 MB, of which its link and what is sent again hold 16 MiB.
    let settled = 0;
    const sending = (async () => {
      for (; settled < many; settled++) await room.send(FIFTY_KB);
    })();
    await world.sleep(5_000);
    expect(settled).toBeGreaterThan(300);
    expect(settled).toBeLessThan(400);
    expect(room.status.waiting).toBe(1);
    const before = settled;
    await world.sleep(5_000);
    expect(settled).toBe(before);
    const late = await world.restart(2);
    await sending;
    await world.sleep(5_000);
    const { channel } = late.status().instances.find(({ kind }) => kind === "channel") ?? {};
    expect(channel?.delivered).toBe(many);
  }));

test("the first reader in a process is told, too, of which channel it has missed messages", () =>
  alone(async (member) => {
    const room = member.channel<string>("room", { order: "fifo" });
    await joined(room, 1);
    for (let sent = 0; sent < 30; sent++) await room.send(FIFTY_KB);
    await expect(next(room.read(), 30)).rejects.toThrow('the reader of the channel "room" was too slow');
  }));
