/** Checks channels with IP multicast, over real datagrams. */

import { expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { type Overheard, overhear } from "../../../test/network/udp-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { everybodyGetsEverything, joined, next } from "../../../test/services/channel-members.ts";
import type { Member } from "./api.ts";
import { orders } from "./call-options.ts";
import type { Channel } from "./channel-api.ts";

const closing = closedAfterEach();

/** Starts members that multicast on this machine and receive from each other, and records the group's datagrams. */
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

/** Expects that messages were multicast: each member has sent and received datagrams with messages. */
async function expectDatagrams(members: readonly Member[], { carriers }: Overheard): Promise<void> {
  for (const { id, admin } of members) {
    expect(carriers.get(id)).toBeGreaterThan(0);
    const page = await (await fetch(`${admin}/metrics`)).text();
    expect(page).toMatch(/^coterie_datagrams_sent_total [1-9]/m);
    expect(page).toMatch(/^coterie_datagrams_received_total [1-9]/m);
  }
}

test.each(orders)("order %s: every member receives every message once", async (order) => {
  const { members, overheard } = await multicasting();
  await everybodyGetsEverything(members, { order, transport: "udp" });
  await expectDatagrams(members, overheard);
});

test("a channel without udp uses no datagrams, though its members do", async () => {
  const { members, overheard } = await multicasting();
  await everybodyGetsEverything(members, { order: "fifo", transport: "tcp" });
  expect(overheard.carriers.size).toBe(0);
});

test("gathers messages into few datagrams, and sends a larger payload too", async () => {
  const { members, overheard } = await multicasting({ maxDatagramBytes: 1_400 });
  const rooms = members.map((member) => member.channel<string>("room", { order: "fifo", transport: "udp" }));
  await Promise.all(rooms.map((room) => joined(room, 3)));
  const [sender, , other] = rooms as [Channel<string>, Channel<string>, Channel<string>];
  const reader = other.read();
  const sends = Array.from({ length: 100 }, () => sender.send("x".repeat(500)));
  const last = sender.send("x".repeat(50_000));
  const places = (await Promise.all(sends)).map(({ id }) => Number(id.split(".").at(-1)));
  expect(Math.max(...places)).toBe(5); // Six of them are 3,000 bytes, and seven would need four datagrams.
  const heard = await next(reader, 101);
  expect(overheard.carriers.get(1)).toBeGreaterThan(0);
  expect(heard.at(-1)).toMatchObject({ id: (await last).id, from: 1 });
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
])("rejects multicast %j before anything is opened", async (wrong, message) => {
  const place = { group: "239.12.34.56", port: 17_654, interface: "127.0.0.1", ...wrong };
  const it = closing(await cluster(1, { multicast: place }));
  await expect(it.start(1)).rejects.toThrow(message);
});
