import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { heapUsedBytes } from "../../../test/network/heap.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { type Overheard, overhear } from "../../../test/network/udp-under-test.ts";
import type { Member } from "./api.ts";
import type { Channel, ChannelMessage, ChannelOptions } from "./channel-api.ts";
import { orders } from "./channel-stacks.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };

const at = <T>(items: readonly T[], index: number): T => items[index] as T;
const three = async (): Promise<Member[]> => startAll(closing(await cluster(3)));

/** Resolves once so many members are in the channel's view. */
async function joined(room: Channel, count: number): Promise<void> {
  for await (const { members, state } of room.views()) if (state === "member" && members.length === count) return;
}

/** The next so many messages. */
async function next<T>(messages: AsyncIterator<ChannelMessage<T>>, count: number): Promise<ChannelMessage<T>[]> {
  const found: ChannelMessage<T>[] = [];
  while (found.length < count) found.push((await messages.next()).value as ChannelMessage<T>);
  return found;
}

describe("a causal channel", () => {
  test("brings every member's messages to every member, nothing before what it may depend on", async () => {
    const members = await three();
    const rooms = members.map((member) => member.channel<string>("room", { order: "causal", reliable: false }));
    const readers = rooms.map((room) => room.read());
    await at(rooms, 0).send("question");
    const heard = await next(at(readers, 1), 1);
    expect(heard).toEqual([{ from: 1, payload: "question", id: "0.1.1.0", view: 0 }]);
    expect(await at(rooms, 1).send("answer")).toEqual({ id: "0.2.1.0", view: 0 });
    const third = await next(at(readers, 2), 2);
    expect(third.map(({ payload }) => payload)).toEqual(["question", "answer"]);
  });
});

const kinds = (["none", "fifo", "causal", "total", "causal-total"] as const).flatMap((order) =>
  [false, true].flatMap((reliable) => (["tcp", "udp"] as const).map((transport) => ({ order, reliable, transport }))),
);

/** Members that multicast on this machine and hear each other, and what they say to the group. */
async function multicasting(
  wanted: { maxDatagramBytes?: number } = {},
): Promise<{ members: Member[]; overheard: Overheard }> {
  const [port = 0] = await freePorts(1);
  const multicast = { group: "239.12.34.56", port, interface: "127.0.0.1", ...wanted };
  const overheard = closing(await overhear(multicast));
  const members = await startAll(closing(await cluster(3, { multicast, admin: "127.0.0.1:0" })));
  await vi.waitFor(() => {
    for (const { id } of members) expect(overheard.hears.get(id)).toHaveLength(2);
  }, PATIENCE);
  return { members, overheard };
}

/** What was said was multicast: each member has sent datagrams that carry messages, and has received some. */
async function expectDatagrams(members: readonly Member[], { carriers }: Overheard): Promise<void> {
  for (const { id, admin } of members) {
    expect(carriers.get(id)).toBeGreaterThan(0);
    const page = await (await fetch(`${admin}/metrics`)).text();
    expect(page).toMatch(/^coterie_datagrams_sent_total [1-9]/m);
    expect(page).toMatch(/^coterie_datagrams_received_total [1-9]/m);
  }
}

test.each(kinds)(
  "order $order, reliable $reliable, over $transport: everybody gets everything, once",
  async (options) => {
    const { members, overheard } = await multicasting();
    const rooms = members.map((member) => member.channel<string>("room", options));
    await Promise.all(rooms.map((room) => joined(room, 3)));
    const readers = rooms.map((room) => room.read());
    const sends = rooms.flatMap((room, index) =>
      Array.from({ length: 100 }, (_, number) => room.send(`${index + 1}: ${number}`)),
    );
    const ids = (await Promise.all(sends)).map(({ id }) => id);
    const heard = await Promise.all(readers.map((reader) => next(reader, 300)));
    for (const messages of heard) {
      expect(new Set(messages.map(({ id }) => id))).toEqual(new Set(ids));
      expect(new Set(messages.map(({ payload }) => payload)).size).toBe(300);
    }
    if (options.order.endsWith("total"))
      expect(new Set(heard.map((messages) => messages.map(({ id }) => id).join())).size).toBe(1);
    if (options.transport === "udp") await expectDatagrams(members, overheard);
    else expect(overheard.carriers.size).toBe(0);
  },
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
  ])("%j is refused", async (options, message, code) => {
    const it = closing(await cluster(1, { dataDir: undefined }));
    const member = await it.start(1);
    const open = (): unknown => member.channel("room", options as ChannelOptions);
    expect(open).toThrow(message);
    expect(open).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    [
      { group: "224.0.0.1" },
      "expected multicast.group of join() to be an IPv4 address from 224.0.1.0 to 239.255.255.255",
    ],
    [{ group: "10.0.0.1" }, "expected multicast.group"],
    [{ port: 0 }, "expected multicast.port"],
    [{ interface: "nowhere0" }, "expected multicast.interface"],
    [{ address: "239.1.1.1" }, "among group, port, interface, ttl, key, maxDatagramBytes"],
  ])("multicast %j is refused before anything is opened", async (wrong, message) => {
    const place = { group: "239.12.34.56", port: 17_654, interface: "127.0.0.1", ...wrong };
    const it = closing(await cluster(1, { multicast: place }));
    await expect(it.start(1)).rejects.toThrow(message);
  });

  test("another order than the one in use is refused, where it is asked for and where others use it", async () => {
    const members = await three();
    const room = at(members, 0).channel("room", { order: "fifo" });
    await joined(room, 3);
    expect(() => at(members, 0).channel("room", { order: "total" })).toThrow(
      'expected the options of the channel "room" to be {"order":"fifo","reliable":true,"transport":"tcp"}, as they are in use already, got {"order":"total","reliable":true,"transport":"tcp"}',
    );
    expect(() => at(members, 1).channel("room", { order: "total" })).toThrow(
      expect.objectContaining({ code: "other-setting" }),
    );
  });

  test("a payload is refused before anything is sent", async () => {
    const it = closing(await cluster(1));
    const room = (await it.start(1)).channel<unknown>("room", { order: "total" });
    await expect(room.send(new Date())).rejects.toMatchObject({ code: "bad-payload" });
    await expect(room.send("x".repeat(60_000))).rejects.toMatchObject({ code: "payload-too-large" });
    await expect(room.send("x", { timeout: 5 } as never)).rejects.toMatchObject({ code: "bad-option" });
    await expect(room.send("x", { timeoutMs: "5" } as never)).rejects.toMatchObject({ code: "bad-option" });
    expect(room.status).toMatchObject({ waiting: 0, inFlight: 0 });
  });
});

describe("a use of a channel", () => {
  test("that is closed sends and reads nothing more, and touches no other", async () => {
    const it = closing(await cluster(1));
    const member = await it.start(1);
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
  });

  test("that only sends leaves nothing behind", async () => {
    const it = closing(await cluster(1));
    const member = await it.start(1);
    const open = (): Channel<string> => member.channel<string>("room", { order: "fifo" });
    const before = heapUsedBytes();
    for (let number = 0; number < 2_000; number++) await open().send("x".repeat(10_000));
    expect(heapUsedBytes() - before).toBeLessThan(10_000_000); // Of 20 MB that were sent.
    await expect((async () => next(open().read(), 2_000))()).rejects.toMatchObject({ code: "reader-too-slow" });
  });

  test("ends when the member leaves: readers, views, and sends that wait", async () => {
    const members = await three();
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
  });

  test("gets what came just before it was opened, when its member was in the group already", async () => {
    const members = await three();
    const room = at(members, 0).channel<string>("room", { order: "fifo" });
    await joined(room, 3);
    await room.send("early"); // All have it.
    const late = at(members, 1).channel<string>("room", { order: "fifo" });
    expect((await next(late.read(), 1)).map(({ payload }) => payload)).toEqual(["early"]);
  });
});

test("where no program reads, what comes is counted and dropped, and nobody waits for it", {
  tags: ["long"],
}, async () => {
  const members = await three();
  const room = at(members, 0).channel<string>("room", { order: "total" });
  await joined(room, 3);
  for (let sent = 0; sent < 30; sent++) await room.send("x".repeat(50_000));
  const statusAt = (index: number) =>
    at(members, index)
      .status()
      .instances.find(({ kind }) => kind === "channel")?.channel;
  await vi.waitFor(() => expect(statusAt(2)).toMatchObject({ delivered: 30, unread: 30, slow: [] }), PATIENCE);
  expect(statusAt(0)).toMatchObject({ delivered: 30, unread: 0, waiting: 0, inFlight: 0 });
});

test("a reader that cannot keep up makes the senders wait, and nothing is lost", async () => {
  const members = await three();
  const rooms = members.map((member) => member.channel<string>("room", { order: "fifo" }));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const slow = at(rooms, 1).read();
  const payload = "x".repeat(50_000);
  const many = 400; // 20 MB, which is more than a reader is kept.
  let settled = 0;
  const sends = Array.from({ length: 200 }, async () => {
    for (let turn = 0; turn < many / 200; turn++) {
      await at(rooms, 0).send(payload);
      settled += 1;
    }
  });
  await vi.waitFor(() => expect(at(rooms, 0).status.slow).toEqual([2]), PATIENCE);
  expect(settled).toBeLessThan(many);
  expect(await next(slow, many)).toHaveLength(many);
  await Promise.all(sends);
  expect(at(rooms, 2).status).toMatchObject({ delivered: many, slow: [] });
});

test("a program that sends more than it reads itself waits for its own reader, and misses nothing", async () => {
  const it = closing(await cluster(1));
  const room = (await it.start(1)).channel<string>("room", { order: "total" });
  await joined(room, 1);
  const reader = room.read();
  const many = 400; // 20 MB, which is more than a reader is kept.
  const sending = (async () => {
    for (let sent = 0; sent < many; sent++) await room.send("x".repeat(50_000));
  })();
  await vi.waitFor(() => expect(room.status.slow).toEqual([1]), PATIENCE);
  expect(await next(reader, many)).toHaveLength(many);
  await sending;
  expect(room.status.slow).toEqual([]);
});

test("what members send fits the frames that they are given", async () => {
  const members = await startAll(closing(await cluster(3, { limits: { maxFrameBytes: 16_384 } })));
  const rooms = members.map((member) => member.channel<string>("room", { order: "causal-total" }));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const reader = at(rooms, 2).read();
  await expect(at(rooms, 0).send("x".repeat(16_000))).rejects.toMatchObject({ code: "payload-too-large" });
  await Promise.all(Array.from({ length: 300 }, (_, number) => at(rooms, number % 2).send("x".repeat(500))));
  await at(rooms, 0).send("x".repeat(15_000));
  expect(await next(reader, 301)).toHaveLength(301);
});

test("the textbook's channel holds back what a member that cannot be reached has no room for, and loses nothing", async () => {
  const it = closing(await cluster(2));
  const room = (await it.start(1)).channel<string>("room", { order: "fifo", reliable: false });
  const many = 500; // 25 MB, of which its link and what is sent again hold 16 MiB.
  let settled = 0;
  const sending = (async () => {
    for (; settled < many; settled++) await room.send("x".repeat(50_000));
  })();
  await vi.waitFor(() => expect(settled).toBeGreaterThan(300), PATIENCE);
  for (let before = 0; before !== settled; ) {
    before = settled;
    await sleep(200);
  }
  expect(settled).toBeLessThan(400);
  expect(room.status.waiting).toBe(1);
  const late = await it.start(2);
  const delivered = () => late.status().instances.find(({ kind }) => kind === "channel")?.channel?.delivered;
  await vi.waitFor(() => expect(delivered()).toBe(many), PATIENCE);
  await sending;
});

test("what members multicast gathers to a few datagrams, and a larger payload goes all the same", async () => {
  const { members, overheard } = await multicasting({ maxDatagramBytes: 1_400 });
  const rooms = members.map((member) => member.channel<string>("room", { order: "fifo", transport: "udp" }));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const reader = at(rooms, 2).read();
  const sends = Array.from({ length: 100 }, () => at(rooms, 0).send("x".repeat(500)));
  const last = at(rooms, 0).send("x".repeat(50_000));
  const places = (await Promise.all(sends)).map(({ id }) => Number(id.split(".").at(-1)));
  expect(Math.max(...places)).toBe(5); // Six of them are 3,000 bytes, and seven would need four datagrams.
  const heard = await next(reader, 101);
  expect(overheard.carriers.get(1)).toBeGreaterThan(0);
  expect(heard.at(-1)).toMatchObject({ id: (await last).id, from: 1 });
});

test("the first reader in a process is told, too, of which channel it has missed messages", async () => {
  const it = closing(await cluster(1));
  const room = (await it.start(1)).channel<string>("room", { order: "fifo" });
  await joined(room, 1);
  for (let sent = 0; sent < 30; sent++) await room.send("x".repeat(50_000));
  await expect(next(room.read(), 30)).rejects.toThrow('the reader of the channel "room" was too slow');
});

test.each(["causal", "total"] as const)("%s: what has been delivered leaves nothing behind", async (order) => {
  const members = await three();
  const rooms = members.map((member) => member.channel<string>("room", { order }));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const readers = rooms.map((room) => room.read());
  const payload = "x".repeat(1_000);
  const exchange = async (turns: number): Promise<number> => {
    for (let turn = 0; turn < turns; turn++) {
      const reads = readers.map((reader) => next(reader, 300));
      await Promise.all(rooms.flatMap((room) => Array.from({ length: 100 }, () => room.send(payload))));
      await Promise.all(reads);
    }
    return heapUsedBytes();
  };
  const before = await exchange(10);
  const after = await exchange(40); // 12,000 messages of 1 KB, at three members: 36 MB.
  expect(after - before).toBeLessThan(10_000_000);
});
