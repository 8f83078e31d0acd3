/** Checks channels of members in virtual time. Tests with real datagrams are in channel-datagrams.test.ts. */
import { describe, expect, test } from "vitest";
import { everybodyGetsEverything, joined, next } from "../../../test/services/channel-members.ts";
import { simulate, type World, type WorldOptions } from "../../testing/index.ts";
import type { Member, MemberEvent } from "./api.ts";
import { orders } from "./call-options.ts";
import type { Channel, ChannelOptions } from "./channel-api.ts";

const at = <T>(items: readonly T[], index: number): T => items[index] as T;

const FIFTY_KB = "x".repeat(50_000);
/** Enough messages for 20 MB, which is more than a reader's backlog. */
const MANY = 400;

/** Runs the body with all members of a world. */
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

test.each(orders)("order %s: every member receives every message once", (order) =>
  together(3, (members) => everybodyGetsEverything(members, { order })),
);

describe("a channel rejects", () => {
  test.each<[object, string, string]>([
    [{}, "order", "bad-option"],
    [{ order: "random" }, "one of none, fifo, causal, total, causal-total", "bad-option"],
    [{ order: "fifo", transport: "quic" }, "one of tcp, udp, log", "bad-option"],
    [{ order: "fifo", ordering: "fifo" }, "among order, transport", "bad-option"],
    [{ order: "fifo", transport: "udp" }, "multicast of join() to be set", "no-multicast"],
    [{ order: "fifo", transport: "log" }, 'order "total" or "causal-total" for a channel on the log', "bad-option"],
  ])("the options %j", (options, message, code) =>
    alone((member) => {
      const open = (): unknown => member.channel("room", options as ChannelOptions);
      expect(open).toThrow(message);
      expect(open).toThrow(expect.objectContaining({ code }));
    }),
  );

  test("other options for its name, at the member that uses it and at the others", () =>
    together(3, async ([first, second], world) => {
      await joined((first as Member).channel("room", { order: "fifo" }), 1);
      expect(() => first?.channel("room", { order: "total" })).toThrow(
        'expected the order of the channel "room" to be "fifo", which is in use here, got "total"',
      );
      expect(() => first?.channel("room", { order: "fifo", transport: "log" })).toThrow();
      const events: MemberEvent[] = [];
      void (async () => {
        for await (const event of second?.events() ?? []) events.push(event);
      })();
      const refused = (second as Member).channel("room", { order: "total" });
      await expect(refused.send("never")).rejects.toMatchObject({ code: "instance-refused", phase: "never-sent" });
      await world.sleep(0);
      expect(events).toContainEqual({
        ...{ type: "instance-refused", kind: "channel", name: "room" },
        why: expect.stringContaining("fifo") as string,
      });
      await joined((second as Member).channel("room", { order: "fifo" }), 2);
    }));

  test("an invalid payload, before anything is sent", () =>
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
  test("that is closed sends and reads no more, and affects no other", () =>
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

  test("ends when the member leaves: its readers, views, and waiting sends", () =>
    together(3, async (members) => {
      const room = at(members, 0).channel<string>("room", { order: "total" });
      const views: string[] = [];
      const watching = (async () => {
        for await (const { state } of room.views()) views.push(state);
      })();
      const reading = (async () => {
        for await (const _ of room);
      })();
      await joined(room, 1);
      await at(members, 0).leave();
      await Promise.all([watching, reading]);
      expect(views.at(-1)).toBe("left");
      await expect(room.send("late")).rejects.toMatchObject({ code: "member-left", phase: "never-sent" });
    }));

  test("reads messages that arrived between opening the channel and reading", () =>
    together(2, async (members) => {
      const rooms = members.map((member) => member.channel<string>("room", { order: "fifo" }));
      await joined(at(rooms, 0), 2);
      await at(rooms, 0).send("early");
      expect((await next(at(rooms, 1).read(), 1)).map(({ payload }) => payload)).toEqual(["early"]);
    }));
});

test("a member counts and drops messages while no program there uses the channel, and senders do not wait for it", () =>
  together(3, async (members, world) => {
    const rooms = members.map((member) => member.channel<string>("room", { order: "total" }));
    await Promise.all(rooms.map((room) => joined(room, 3)));
    await at(rooms, 2).close();
    for (let sent = 0; sent < 30; sent++) await at(rooms, 0).send(FIFTY_KB);
    await world.sleep(100);
    const statusAt = (index: number) =>
      at(members, index)
        .status()
        .instances.find(({ kind }) => kind === "channel")?.channel;
    expect(statusAt(2)).toMatchObject({ delivered: 30, unread: 30, slow: [] });
    expect(statusAt(0)).toMatchObject({ delivered: 30, unread: 0, waiting: 0, inFlight: 0 });
  }));

test("a slow reader makes the senders wait, and nothing is lost", () =>
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

test("a program that sends more than it reads waits for its own reader, and misses nothing", () =>
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

test("messages of members fit into their frames", () =>
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

test("the error of the first reader in a process names its channel too", () =>
  alone(async (member) => {
    const room = member.channel<string>("room", { order: "fifo" });
    await joined(room, 1);
    for (let sent = 0; sent < 30; sent++) await room.send(FIFTY_KB);
    await expect(next(room.read(), 30)).rejects.toThrow('the reader of the channel "room" was too slow');
  }));
