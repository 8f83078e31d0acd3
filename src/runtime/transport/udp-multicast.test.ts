import { createSocket } from "node:dgram";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { expectNothingLeft, handlesAtRest } from "../../../test/network/open-handles.ts";
import { numbered } from "../../../test/network/transport-under-test.ts";
import {
  type AroundUdp,
  loopbackPlace,
  type UdpUnderTest,
  udpUnderTest,
} from "../../../test/network/udp-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { InvariantViolation, UsageError } from "../../core/errors.ts";
import { noFaults } from "../fault-injector.ts";
import type { UdpPlace } from "./udp-place.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

let atRest: string[];
afterEach(() => expectNothingLeft(atRest));
const closing = closedAfterEach();
let place: UdpPlace;

beforeEach(async () => {
  atRest = await handlesAtRest();
  const [port] = await freePorts(1);
  place = loopbackPlace(port as number);
});

async function opened(around: Partial<AroundUdp> & { self: number }): Promise<UdpUnderTest> {
  const under = closing(udpUnderTest({ members: [0, 1, 2], place, ...around }));
  await under.open();
  return under;
}

/** Starts nodes 0, 1 and 2, and waits until datagrams arrive between all of them. */
async function three(around: Partial<AroundUdp> = {}): Promise<[UdpUnderTest, UdpUnderTest, UdpUnderTest]> {
  const nodes = await Promise.all([0, 1, 2].map((self) => opened({ self, ...around })));
  await vi.waitFor(() => {
    for (const { transport } of nodes) expect(transport.reached.size).toBe(2);
  }, PATIENCE);
  return nodes as [UdpUnderTest, UdpUnderTest, UdpUnderTest];
}

describe.each([null, "a secret of all members"])("with the key %j", (key) => {
  test("a multicast message arrives at all other members, but not at its sender", async () => {
    const nodes = await three({ place: { ...place, key } });
    for (const value of upTo(100)) for (const { transport } of nodes) transport.send(numbered(value));
    await vi.waitFor(() => {
      for (const [i, node] of nodes.entries())
        for (const from of nodes.keys()) expect(node.from(from)).toEqual(from === i ? [] : upTo(100));
    }, PATIENCE);
    for (const { detours, lines, fatal } of nodes) expect([detours, lines, fatal]).toEqual([[], [], []]);
  });

  test("a message that does not fit into one datagram arrives in fragments, as one message", async () => {
    const [sender, receiver] = await three({ place: { ...place, key, maxDatagramBytes: 1_400 } });
    const sentBefore = sender.counts.datagramsSent;
    sender.transport.send(numbered(1));
    sender.transport.send(numbered(2, "x".repeat(100_000)));
    sender.transport.send(numbered(3));
    await vi.waitFor(() => expect(receiver.from(0)).toEqual([1, 2, 3]), PATIENCE);
    expect(sender.counts.datagramsSent - sentBefore).toBeGreaterThanOrEqual(2 + Math.ceil(100_000 / 1_400));
  });
});

describe("multicast", () => {
  test("the messages of one turn share a datagram for all receivers", async () => {
    const [sender, receiver] = await three();
    const sentBefore = sender.counts.datagramsSent;
    for (const value of upTo(50)) sender.transport.send(numbered(value));
    await vi.waitFor(() => expect(receiver.from(0)).toEqual(upTo(50)), PATIENCE);
    expect(sender.counts.datagramsSent - sentBefore).toBeLessThan(5); // One datagram, and possibly hellos in between.
  });

  test("both ends have the same id for a message, which includes its receiver", async () => {
    const [sender, one, two] = await three();
    const results = upTo(3).map((value) => sender.transport.send(numbered(value)));
    await vi.waitFor(() => {
      for (const node of [one, two]) expect(node.from(0)).toEqual([1, 2, 3]);
    }, PATIENCE);
    expect(results.map((result) => result(1).id())).toEqual(one.receivedIds);
    expect(results.map((result) => result(2).id())).toEqual(two.receivedIds);
    expect(results.map((result) => result(1).lost)).toEqual([null, null, null]);
    expect(one.receivedIds[0]).toMatch(/^0-1-/);
  });

  test("until members receive each other's datagrams, messages use the fallback", async () => {
    const alone = await opened({ self: 0 });
    alone.transport.send(numbered(7));
    expect(alone.detours).toEqual([
      { to: 1, value: 7 },
      { to: 2, value: 7 },
    ]);
  });

  test("only the intended receivers get a message by the fallback, and without receivers no datagram leaves", async () => {
    const lone = await opened({ self: 0 });
    lone.transport.send(numbered(1), [2]);
    lone.transport.send(numbered(2), []);
    expect(lone.detours).toEqual([{ to: 2, value: 1 }]);
    const one = await opened({ self: 1 });
    await vi.waitFor(() => expect([...lone.transport.reached, ...one.transport.reached]).toEqual([1, 0]), PATIENCE);
    lone.transport.send(numbered(3), [2]); // Datagrams do not reach node 2.
    lone.transport.send(numbered(4), []);
    lone.transport.send(numbered(5), [1]);
    lone.transport.send(numbered(6), [1, 2]);
    await vi.waitFor(() => expect(one.from(0)).toContain(6), PATIENCE);
    expect(one.from(0)).toEqual([5, 6]);
    expect(lone.detours.slice(1)).toEqual([
      { to: 2, value: 3 },
      { to: 2, value: 6 },
    ]);
  });

  test("rejects a message longer than the limit before anything leaves", async () => {
    const [sender, receiver] = await three({ maxMessageBytes: 10_000 });
    expect(() => sender.transport.send(numbered(1, "x".repeat(10_000)))).toThrow(InvariantViolation);
    sender.transport.send(numbered(2));
    await vi.waitFor(() => expect(receiver.from(0)).toEqual([2]), PATIENCE);
  });

  test("rejects an unknown member", () => {
    expect(() => udpUnderTest({ self: 3, members: [0, 1], place })).toThrow(UsageError);
  });

  test("a restarted process is heard again, and datagrams of the previous run are rejected", async () => {
    const [first, receiver] = await three();
    first.transport.send(numbered(1));
    await vi.waitFor(() => expect(receiver.from(0)).toEqual([1]), PATIENCE);
    first.close();
    const second = await opened({ self: 0 });
    await vi.waitFor(() => {
      second.transport.send(numbered(2)); // This message is lost, because the nodes have not exchanged hellos yet.
      expect(receiver.from(0)).toContain(2);
    }, PATIENCE);
    expect(new Set(receiver.from(0))).toEqual(new Set([1, 2]));
  });
});

describe("if multicast is filtered", () => {
  test("it is logged once and messages use the fallback; the recovery is logged, too", async () => {
    const [sender, one] = await three();
    sender.injector.faults = { ...noFaults, cutTo: [1, 2] };
    await vi.waitFor(() => expect(one.lines.join("\n")).toContain("does not reach node 0 and back"), PATIENCE);
    expect(one.lines).toHaveLength(1);
    expect(one.lines[0]).toContain("although the links are open: a filter");
    expect([...one.transport.reached]).toEqual([2]);
    one.transport.send(numbered(5));
    expect(one.detours).toEqual([{ to: 0, value: 5 }]);

    sender.injector.faults = noFaults;
    await vi.waitFor(() => expect(one.transport.reached.size).toBe(2), PATIENCE);
    expect(one.lines.slice(1)).toEqual(["multicast to node 0 works again"]);
  });

  test("one direction is enough: a member whose datagrams are lost learns that from the other's hellos", async () => {
    const [sender, one] = await three();
    sender.injector.faults = { ...noFaults, cutTo: [1] };
    await vi.waitFor(() => expect(sender.transport.reached.has(1)).toBe(false), PATIENCE);
    sender.transport.send(numbered(5));
    expect(sender.detours).toEqual([{ to: 1, value: 5 }]);
    expect(one.transport.reached.has(2)).toBe(true);
  });

  test("nothing is logged about a member that is unreachable by other links, too", { tags: ["long"] }, async () => {
    const [sender, one] = await three();
    one.linked = [2];
    sender.close();
    await vi.waitFor(() => expect(one.transport.reached.has(0)).toBe(false), PATIENCE);
    await sleep(1_500);
    expect(one.lines).toEqual([]);
  });

  test("a port used by another program is logged, and messages use the fallback", async () => {
    const other = createSocket("udp4");
    closing({ close: () => new Promise((resolve) => other.close(() => resolve(null))) });
    await new Promise<void>((resolve) => other.bind(place.port, place.group, resolve));
    const alone = await opened({ self: 0 });
    expect(alone.lines).toHaveLength(1);
    expect(alone.lines[0]).toMatch(/^cannot multicast to 239\.192\.7\.7:\d+ through 127\.0\.0\.1: .*EADDRINUSE/);
    expect(alone.lines[0]).toContain("Messages are sent to each member separately until this member restarts");
    alone.transport.send(numbered(1));
    expect(alone.detours).toHaveLength(2);
  });
});

describe("datagrams at the fault injector", () => {
  test("are dropped for each receiver separately, and the sender's trace records it", async () => {
    const [sender, one, two] = await three({ place: { ...place, maxDatagramBytes: 512 } });
    sender.injector.faults = { ...noFaults, datagrams: { dropRate: 0.5, duplicateRate: 0, reorderRate: 0 } };
    const values = new Map<string, number>();
    for (const value of upTo(200)) {
      const result = sender.transport.send(numbered(value, "x".repeat(400)));
      for (const to of [1, 2]) values.set(result(to).id(), value);
    }
    const lostTo = (to: number) =>
      sender.lost.filter((loss) => loss.to === to).flatMap(({ ids }) => ids.map((id) => values.get(id)));
    await vi.waitFor(() => {
      expect(one.from(0).length + lostTo(1).length).toBe(200);
      expect(two.from(0).length + lostTo(2).length).toBe(200);
    }, PATIENCE);
    for (const [to, node] of [one, two].entries()) {
      expect(node.from(0)).toEqual(upTo(200).filter((value) => !lostTo(to + 1).includes(value)));
      expect(node.from(0).length).toBeGreaterThan(40);
      expect(node.from(0).length).toBeLessThan(160);
    }
    expect(one.from(0)).not.toEqual(two.from(0));
    expect(sender.counts.lost.dropped).toBe(sender.lost.flatMap(({ ids }) => ids).length);
  });

  test("are duplicated and reordered", async () => {
    const [sender, one] = await three({ place: { ...place, maxDatagramBytes: 512 } });
    sender.injector.faults = { ...noFaults, datagrams: { dropRate: 0, duplicateRate: 0.5, reorderRate: 0.5 } };
    for (const value of upTo(200)) sender.transport.send(numbered(value, "x".repeat(400)));
    await vi.waitFor(() => {
      expect(new Set(one.from(0)).size).toBe(200);
      expect(one.from(0).length).toBeGreaterThan(220);
    }, PATIENCE);
    const firsts = [...new Set(one.from(0))];
    expect(firsts).not.toEqual(upTo(200));
    expect(sender.lost).toEqual([]);
  });

  test("a long message is lost once if any of its fragments is", { tags: ["long"] }, async () => {
    const [sender, one] = await three({ place: { ...place, maxDatagramBytes: 512 } });
    sender.injector.faults = { ...noFaults, datagrams: { dropRate: 0.5, duplicateRate: 0, reorderRate: 0 } };
    sender.transport.send(numbered(1, "x".repeat(30_000)));
    sender.injector.faults = noFaults;
    sender.transport.send(numbered(2, "x".repeat(30_000)));
    await vi.waitFor(() => expect(one.from(0)).toEqual([2]), PATIENCE);
    const lostTo = (to: number) => sender.lost.filter((loss) => loss.to === to).map(({ ids }) => ids.length);
    expect([lostTo(1), lostTo(2)]).toEqual([[1], [1]]);
    // The receiver drops the incomplete message after a while.
    await vi.waitFor(() => expect(one.counts.messagesIncomplete).toBe(1), PATIENCE);
  });
});
