import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { type BreakingProxy, breakingProxy } from "../../../test/network/breaking-proxy.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { expectNothingLeft, handlesAtRest } from "../../../test/network/open-handles.ts";
import { seededRandom } from "../../../test/network/seed.ts";
import {
  type Around,
  numbered,
  numberedShape,
  type TransportUnderTest,
  transportUnderTest,
} from "../../../test/network/transport-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { Random } from "../../core/random.ts";
import { faultInjector } from "../fault-injector.ts";
import { createLog } from "../log.ts";
import { newCounts } from "../metrics.ts";
import { realPlatform } from "../platform/real.ts";
import { GroupIdentity } from "./identity.ts";
import { tcpTransport } from "./tcp.ts";

const closing = closedAfterEach();

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

async function opened(around: Around): Promise<TransportUnderTest> {
  const under = closing(transportUnderTest(around));
  await under.open();
  return under;
}

/** Resolves when the link from `under` to `peer` is open. */
const linked = (under: TransportUnderTest, peer: number): Promise<void> =>
  vi.waitFor(() => expect(under.transport.peers.find(({ id }) => id === peer)?.link).toBe("open"), PATIENCE);

/** Starts nodes 0 … count − 1. Every link has its own proxy, which the test can break. */
async function cluster(count: number, limits: Around["limits"] = {}) {
  const ports = await freePorts(count * count);
  const own = (node: number): number => ports[node * count + node] as number;
  const proxies: BreakingProxy[] = [];
  const nodes: TransportUnderTest[] = [];
  for (let node = 0; node < count; node++) {
    for (let peer = 0; peer < count; peer++) {
      if (peer !== node) proxies.push(closing(await breakingProxy(ports[node * count + peer] as number, own(peer))));
    }
    const row = Object.fromEntries(upTo(count).map((_, peer) => [peer, ports[node * count + peer] as number]));
    nodes.push(closing(transportUnderTest({ self: node, ports: row, limits })));
  }
  await Promise.all(nodes.map((node) => node.open()));
  return { nodes, proxies };
}

/** Makes every node send `count` numbers to each of the others, while connections break at random. */
async function exchange({ nodes, proxies }: Awaited<ReturnType<typeof cluster>>, count: number, chance: Random) {
  const pairs = nodes.flatMap((from, i) => nodes.map((_, to) => ({ from, to, next: 1 })).filter(({ to }) => to !== i));
  let breaks = 0;
  while (pairs.some(({ next }) => next <= count)) {
    for (const pair of pairs) {
      const batch = Math.min(chance.below(200), count - pair.next + 1);
      for (let i = 0; i < batch; i++) {
        const { lost } = pair.from.transport.send(pair.to, numbered(pair.next, "x".repeat(chance.below(40))));
        expect(lost).toBeNull();
        pair.next += 1;
      }
    }
    if (chance.below(12) === 0) {
      chance.pick(proxies).breakAll();
      breaks += 1;
    }
    await nextTurn();
  }
  return breaks;
}

function expectAll(nodes: readonly TransportUnderTest[], count: number): Promise<void> {
  return vi.waitFor(() => {
    for (const [i, node] of nodes.entries())
      for (const peer of nodes.keys()) if (peer !== i) expect(node.from(peer).length).toBeGreaterThanOrEqual(count);
  }, PATIENCE);
}

describe("two processes that keep running lose nothing and receive nothing twice", () => {
  test.each([
    [2, 50_000],
    [3, 17_000],
  ])(
    "%i nodes, %i messages on each link, connections that break at random",
    { tags: ["long"] },
    async (size, count) => {
      const chance = seededRandom();
      const under = await cluster(size);
      const breaks = await exchange(under, count, chance);
      await expectAll(under.nodes, count);
      for (const [i, node] of under.nodes.entries()) {
        for (const peer of under.nodes.keys()) if (peer !== i) expect(node.from(peer)).toEqual(upTo(count));
        expect(node.lost).toEqual([]);
        expect(node.fatal).toEqual([]);
        expect(node.counts.lost).toEqual({});
      }
      expect(breaks).toBeGreaterThan(0);
      expect(under.nodes.reduce((sum, node) => sum + node.counts.reconnects, 0)).toBeGreaterThan(0);
    },
  );

  test("delayed messages keep their order while connections break and the delay changes", async () => {
    const chance = seededRandom();
    const under = await cluster(2);
    const [sender, receiver] = under.nodes as [TransportUnderTest, TransportUnderTest];
    for (let value = 1; value <= 5_000; value++) {
      if (value % 100 === 1) {
        const max = chance.below(3) * 4;
        sender.injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max } };
        if (chance.below(4) === 0) for (const proxy of under.proxies) proxy.breakAll();
        await nextTurn();
      }
      sender.transport.send(1, numbered(value));
    }
    await vi.waitFor(() => expect(receiver.from(0)).toHaveLength(5_000), PATIENCE);
    expect(receiver.from(0)).toEqual(upTo(5_000));
  });
});

test("a peer that is removed and comes back, at either end, continues its numbering, and receives nothing twice", async () => {
  const [here, there] = (await freePorts(2)) as [number, number];
  const ports = { 0: here, 1: there };
  const [sender, receiver] = [await opened({ self: 0, ports }), await opened({ self: 1, ports })];
  const send = (first: number, last: number): void => {
    for (let value = first; value <= last; value++) sender.transport.send(1, numbered(value));
  };
  const arrived = (count: number): Promise<void> =>
    vi.waitFor(() => expect(receiver.from(0)).toEqual(upTo(count)), PATIENCE);
  send(1, 100);
  await arrived(100);
  sender.transport.removePeer(1);
  sender.transport.setPeer(1, { host: "127.0.0.1", port: there });
  send(101, 200);
  await arrived(200);
  receiver.transport.removePeer(0);
  send(201, 250);
  receiver.transport.setPeer(0, { host: "127.0.0.1", port: here });
  send(251, 300);
  await arrived(300);
  expect([...sender.lines, ...receiver.lines].filter((line) => line.includes("invalid"))).toEqual([]);
});

describe("a peer that restarts", () => {
  test("is recognized by its welcome, if nothing else shows that the old process has ended", async () => {
    const [proxied, target, own] = (await freePorts(3)) as [number, number, number];
    closing(await breakingProxy(proxied, target));
    const sender = await opened({ self: 0, ports: { 0: own, 1: proxied } });
    // These members do not dial back, because they have a different address for node 0.
    const elsewhere = { 0: proxied, 1: target };
    const old = await opened({ self: 1, ports: elsewhere });
    await linked(sender, 1);
    await old.close();
    for (const value of [1, 2, 3]) sender.transport.send(1, numbered(value));
    const again = await opened({ self: 1, ports: elsewhere });
    await vi.waitFor(() => expect(sender.counts.lost).toEqual({ crashed: 3 }), PATIENCE);
    sender.transport.send(1, numbered(4));
    await vi.waitFor(() => expect(again.from(0)).toEqual([4]), PATIENCE);
  });
});

describe("a peer that does not read", () => {
  test("has a bounded queue: excess messages are counted and logged once, and the rest arrive in order", async () => {
    const maxQueueBytes = 2 ** 20;
    const { nodes, proxies } = await cluster(2, { maxQueueBytes });
    const [sender, receiver] = nodes as [TransportUnderTest, TransportUnderTest];
    await linked(sender, 1);
    const proxy = proxies[0] as BreakingProxy;
    proxy.pause(true);
    const payload = "x".repeat(10_000);
    const taken: number[] = [];
    let refused = 0;
    let mostQueued = 0;
    for (const value of upTo(3_000)) {
      const { lost } = sender.transport.send(1, numbered(value, payload));
      if (lost === null) taken.push(value);
      else refused += 1;
      mostQueued = Math.max(mostQueued, sender.transport.peers[0]?.queuedBytes ?? 0);
      if (value % 50 === 0) await nextTurn();
    }
    expect(refused).toBeGreaterThan(0);
    expect(mostQueued).toBeLessThan(maxQueueBytes + 2 * payload.length);
    expect(sender.counts.lost).toEqual({ overflow: refused });
    expect(sender.lines).toEqual([expect.stringMatching(/^the queue to node 1 is full \(\d+ bytes\)/)]);
    proxy.pause(false);
    await vi.waitFor(() => expect(receiver.from(0)).toHaveLength(taken.length), PATIENCE);
    expect(receiver.from(0)).toEqual(taken);
  });
});

describe("opening and closing", () => {
  test("closing while it dials, waits and is full leaves neither timer nor socket", async () => {
    const before = await handlesAtRest();
    const { nodes, proxies } = await cluster(3);
    for (const node of nodes) node.injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 1_000, max: 1_000 } };
    for (const node of nodes.slice(1)) node.transport.send(0, numbered(1));
    for (const node of nodes) await node.close();
    for (const node of nodes) await node.transport.tried();
    for (const proxy of proxies) await proxy.close();
    await expectNothingLeft(before);
  });

  test("IPv6 addresses are shown in brackets", async ({ skip }) => {
    const [port, other] = (await freePorts(2)) as [number, number];
    const members = { 0: { host: "::1", port }, 1: { host: "::1", port: other } };
    const arrived: number[] = [];
    const log = createLog(() => {});
    const quiet = {
      cluster: "test",
      members,
      protocol: "numbers",
      shape: numberedShape,
      injector: faultInjector(realPlatform.random),
      counts: newCounts(),
      log,
      onLost: () => {},
      onFatal: () => {},
    };
    const identityOf = (self: number) => new GroupIdentity({ self, members: [0, 1], log });
    const deliver = (_from: number, { value }: { value: number }) => void arrived.push(value);
    const sender = closing(
      tcpTransport<ReturnType<typeof numbered>>({
        platform: realPlatform,
        ...quiet,
        self: 0,
        deliver,
        identity: identityOf(0),
      }),
    );
    const receiver = closing(
      tcpTransport<ReturnType<typeof numbered>>({
        platform: realPlatform,
        ...quiet,
        self: 1,
        deliver,
        identity: identityOf(1),
      }),
    );
    try {
      await receiver.open();
    } catch (error) {
      expect((error as Error).message).toContain(`cannot listen on [::1]:${other}`);
      return skip("this machine has no IPv6");
    }
    await sender.open();
    expect(sender.peers[0]?.address).toBe(`[::1]:${other}`);
    sender.send(1, numbered(1));
    await vi.waitFor(() => expect(arrived).toEqual([1]), PATIENCE);
  });
});
