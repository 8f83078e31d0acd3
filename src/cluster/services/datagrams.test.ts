/**
 * Checks which datagrams a joined member accepts, and how its channels multicast. An impostor sends in the name of node
 * 3.
 */

import { describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { type Cluster, cluster, meetOnce } from "../../../test/network/joined.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { joined } from "../../../test/services/channel-members.ts";
import { canonical } from "../../core/plain.ts";
import type { Tagged } from "../../core/protocol.ts";
import { type AnyProtocol, coordinationService, heartbeat } from "../../protocols/index.ts";
import { faultInjector } from "../../runtime/fault-injector.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { type UdpMulticast, udpMulticast } from "../../runtime/transport/udp-multicast.ts";
import type { UdpPlace } from "../../runtime/transport/udp-place.ts";
import type { Member } from "./api.ts";
import { type Envelope, envelopeShape } from "./envelope.ts";

const closing = closedAfterEach();
const protocol = (made: unknown): AnyProtocol => made as AnyProtocol;

/** Creates a multicast transport that has no links. It knows the key if there is one. */
function impostor(place: UdpPlace): UdpMulticast<Envelope> {
  return closing(
    udpMulticast<Envelope>({
      platform: realPlatform,
      ...{ cluster: "coterie", self: 3, members: [1, 2, 3], place },
      protocol: canonical(["services", "default"]),
      shape: envelopeShape(protocol(heartbeat()), protocol(coordinationService())),
      ...{
        injector: faultInjector(realPlatform.random),
        counts: newCounts(),
        log: { info() {}, warn() {}, error() {}, once() {} },
      },
      deliver() {},
      onLost() {},
      fallback: () => ({ id: () => "", lost: null }),
      linked: () => [],
      onFatal(error) {
        throw error;
      },
    }),
  );
}

const metric = async (member: Member, name: string): Promise<number> => {
  const page = await (await fetch(`${member.admin}/metrics`)).text();
  return Number(
    page
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.slice(name.length) ?? 0,
  );
};

/** Starts members 1 and 2 of three, and an impostor of the third that reaches both. */
async function posedAs(key: string | null = null) {
  const [port = 0] = await freePorts(1);
  const multicast = { group: "239.12.34.56", port, interface: "127.0.0.1", key };
  const it = closing(await cluster(3, { multicast, admin: "127.0.0.1:0" }));
  await meetOnce(it);
  const [one, two] = await Promise.all([it.start(1), it.start(2)]);
  const third = impostor(multicast);
  await third.open();
  const refusedAt = (member: Member): Promise<number> => metric(member, 'coterie_refused_total{reason="forged"}');
  await vi.waitFor(async () => {
    expect([...third.reached]).toEqual([1, 2]);
    third.send(alive);
    for (const member of [one, two]) expect(await refusedAt(member)).toBeGreaterThan(0);
  }, PATIENCE);
  third.send({ type: "pressure", name: "the last one", isFull: true }); // Datagrams of one machine stay in order.
  await vi.waitFor(() => expect(it.lines.filter((line) => line.includes("the last one"))).toHaveLength(2), PATIENCE);
  const before = await refusedAt(one);
  return { it, one, third, refused: async () => (await refusedAt(one)) - before };
}

const forged: Envelope = {
  type: "channel",
  name: "room",
  content: {
    type: "log-view-synchrony",
    body: {
      type: "multicast",
      body: { type: "data", view: 1, number: 1, stable: 0, acks: [], payload: '1 1 ["forged"]' },
    } as Tagged,
  },
};
const alive: Envelope = { type: "detector", body: { type: "alive", beat: 1 } as Tagged };

const linesOf = ({ lines }: Cluster): string[] => lines.filter((line) => line.includes("refused a datagram"));

describe.each([null, "a secret of all members"])("a datagram, with the key %j", (key) => {
  test("carries messages of channels with udp, and is refused with anything else", async () => {
    const { it, one, third, refused } = await posedAs(key);
    const room = one.channel<string>("room", { order: "none" });
    await joined(room, 1);
    const reader = room.read();
    for (const envelope of [alive, { type: "pressure", name: "room", isFull: true } as const, forged])
      third.send(envelope);
    await vi.waitFor(async () => expect(await refused()).toBe(3), PATIENCE);
    expect(linesOf(it)).toContain(
      'refused a datagram from node 3: expected a message for a channel that uses udp, got channel of "room"',
    );
    await room.send("genuine");
    expect((await reader.next()).value).toMatchObject({ from: 1, payload: "genuine" });
  });
});

test("nothing is retained for a member outside the view, which receives no datagrams either", async () => {
  const [port = 0] = await freePorts(1);
  const it = closing(await cluster(3, { multicast: { group: "239.12.34.56", port, interface: "127.0.0.1" } }));
  await meetOnce(it);
  const [one, two] = await Promise.all([it.start(1), it.start(2)]);
  const [room, other] = [one, two].map((member) => member.channel("room", { order: "fifo", transport: "udp" }));
  for await (const { members } of room?.views() ?? []) if (members.length === 2) break;
  const queued = () => one.status().peers.find(({ id }) => id === 3)?.queuedBytes ?? Number.NaN;
  const before = queued();
  for (let sent = 0; sent < 20; sent++) await room?.send("x".repeat(50_000));
  expect(other?.status.members).toEqual([1, 2]);
  expect(queued() - before).toBeLessThan(50_000); // The sent messages have 1 MB in total.
});

test("with TLS, multicast requires a key: without one, any program on the machine could impersonate members", async () => {
  const multicast = { group: "239.12.34.56", port: 17_654, interface: "127.0.0.1" };
  const tls = { ca: "unread.pem", cert: "unread.pem", key: "unread.key" };
  const it = closing(await cluster(1, { multicast, tls }));
  await expect(it.start(1)).rejects.toThrow("expected multicast.key of join() to be set, because");
});
