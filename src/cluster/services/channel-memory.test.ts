/**
 * Measures the memory that channels retain in a process. Uses real members, since a simulated world's disks and
 * machines share the heap.
 */
import { expect, test } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { heapUsedBytes } from "../../../test/network/heap.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { joined, next } from "../../../test/services/channel-members.ts";
import type { Channel } from "./channel-api.ts";

const closing = closedAfterEach();

test("a use that only sends retains nothing", async () => {
  const it = closing(await cluster(1));
  const member = await it.start(1);
  const open = (): Channel<string> => member.channel<string>("room", { order: "fifo" });
  const before = heapUsedBytes();
  for (let number = 0; number < 2_000; number++) await open().send("x".repeat(10_000));
  expect(heapUsedBytes() - before).toBeLessThan(10_000_000); // 20 MB have been sent.
  await expect((async () => next(open().read(), 2_000))()).rejects.toMatchObject({ code: "reader-too-slow" });
});

test.each(["causal", "total"] as const)("%s: delivered messages are not retained", async (order) => {
  const members = await startAll(closing(await cluster(3)));
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
