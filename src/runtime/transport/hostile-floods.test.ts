/**
 * Sends thousands of malformed, oversized, replayed and wrongly signed messages to a member whose protocol signs, over
 * TCP and over UDP. All of them are counted and dropped, each kind is logged once, memory use does not grow, and
 * genuine messages still get through.
 */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { type Relay, relayedOrder } from "../../../test/drivers/relayed-order.ts";
import { Caller, helloOf, identityOf } from "../../../test/network/caller.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { heapUsedBytes } from "../../../test/network/heap.ts";
import { newKeys } from "../../../test/network/signing-keys.ts";
import { loopbackPlace } from "../../../test/network/udp-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { NodeId } from "../../core/protocol.ts";
import { variants } from "../../core/shape.ts";
import { idealSignatures } from "../../core/signatures.ts";
import { faultInjector } from "../fault-injector.ts";
import { Host } from "../host.ts";
import { createLog } from "../log.ts";
import { linksOf, networkMetrics } from "../metric-table.ts";
import { type Counts, newCounts } from "../metrics.ts";
import { metricsPage } from "../metrics-page.ts";
import { realPlatform } from "../platform/real.ts";
import { codecOf, Writer } from "../wire.ts";
import { wrongSignatures } from "../wrong-signatures.ts";
import { closeFrame, FRAME, openFrame, protocolHash } from "./frames.ts";
import { GroupIdentity } from "./identity.ts";
import { tcpTransport } from "./tcp.ts";
import { DatagramFormat, type Header, isObjection } from "./udp-datagram.ts";
import { type UdpMulticast, udpMulticast } from "./udp-multicast.ts";

const closing = closedAfterEach();
const MIB = 2 ** 20;
const FEW = 50;
/**
 * Node 0 gives orders, node 1 forwards them, and node 2 obeys. Node 1 is the attacker. It knows everything that a
 * member knows, except for the other members' keys.
 */
const NODES: readonly NodeId[] = [0, 1, 2];
const protocol = relayedOrder("signed");
const shape = variants<Relay["message"]>(protocol.shapes.message);
const codec = codecOf<Relay["message"]>(shape);
type Order = Relay["message"]["order"];

const keys = newKeys(NODES);
const orderOf = (by: NodeId, signature: string): Relay["message"] => {
  const order: Order = { by, value: "attack", signature };
  return { type: "order", order };
};
const genuine = orderOf(0, keys(0).sign('["order",0,"attack"]'));
/**
 * Orders signed by a different node, signed for a different value, with an invalid signature, and in the simulator's
 * format.
 */
const wronglySigned: readonly Relay["message"][] = [
  orderOf(0, keys(1).sign('["order",0,"attack"]')),
  orderOf(0, keys(0).sign('["order",0,"retreat"]')),
  orderOf(0, ""),
  orderOf(0, "?".repeat(128)),
  orderOf(0, idealSignatures(0).sign('["order",0,"attack"]')),
];

interface Victim {
  readonly host: Host<Relay>;
  readonly counts: Counts;
  readonly lines: string[];
  readonly log: ReturnType<typeof createLog>;
  readonly failures: Error[];
  /** Returns the value of this metric from `/metrics`. */
  shown(metric: string): Promise<number>;
}

function victim(): Victim {
  const [counts, lines, failures]: [Counts, string[], Error[]] = [newCounts(), [], []];
  const log = createLog((_level, line) => lines.push(line));
  const host = new Host<Relay>({
    platform: realPlatform,
    protocol,
    self: 2,
    peers: [0, 1],
    send: () => ({ id: () => "-", lost: null }),
    trace: { wanted: false, record: () => undefined },
    signatures: keys(2),
    onWrongSignature: wrongSignatures(2, counts, log),
    onFatal: (error) => failures.push(error),
  });
  host.start();
  closing({ close: () => host.stop() });
  const page = metricsPage(
    networkMetrics(
      counts,
      linksOf(() => []),
    ),
  );
  const shown = async (metric: string): Promise<number> =>
    Number(
      (await page.text())
        .split("\n")
        .find((line) => line.startsWith(`${metric} `))
        ?.slice(metric.length + 1),
    );
  return { host, counts, lines, log, failures, shown };
}

const obeyed = ({ host }: Victim): readonly string[] =>
  (host.snapshot() as unknown as { state: Relay["state"] }).state.obeyed;

/**
 * Expects that nothing failed, and that each kind was logged once. If a flood lasts long, it is logged again each
 * minute, with its count.
 */
function expectUnharmed({ lines, failures }: Victim, kinds: readonly RegExp[]): void {
  expect(failures).toEqual([]);
  const first = lines.filter((line) => !line.includes(" more times in the last "));
  for (const kind of kinds)
    expect(
      first.filter((line) => kind.test(line)),
      lines.join("\n"),
    ).toHaveLength(1);
  expect(first.length).toBe(kinds.length);
}

const WRONG = /^node 1 sent a value that node 0 has not signed: ignoring the value/;

/** Resolves once the condition holds. Checks it after each arrival. */
async function taken(isSo: () => boolean): Promise<void> {
  for (const from = Date.now(); !isSo(); await new Promise((resolve) => setImmediate(resolve)))
    if (Date.now() - from > PATIENCE.timeout) throw new Error("what was sent has not arrived");
}

/**
 * Measures how much memory use grows while some messages of each kind are sent in turn. It must not grow over all of
 * them.
 */
const grownBytes = async (work: (share: number) => Promise<void>, each: number): Promise<number> => {
  await work(Math.ceil(each / 10));
  const before = heapUsedBytes();
  await work(each - Math.ceil(each / 10));
  return heapUsedBytes() - before;
};

describe("over TCP", () => {
  async function attacked(each: number): Promise<void> {
    const [port] = (await freePorts(1)) as [number];
    const target = victim();
    const { counts, log } = target;
    const identity = new GroupIdentity({ self: 2, members: NODES, log, memory: null });
    const transport = tcpTransport<Relay["message"]>({
      platform: realPlatform,
      cluster: "test",
      self: 2,
      members: Object.fromEntries(NODES.map((id) => [id, { host: "127.0.0.1", port: id === 2 ? port : 1 }])),
      protocol: "orders",
      shape,
      limits: { maxFrameBytes: 4_096 },
      identity,
      tls: null,
      injector: faultInjector(realPlatform.random),
      counts,
      log,
      deliver: (from, message, id) => target.host.receive(from, message, id),
      onLost: () => {},
      onFatal: (error) => target.failures.push(error),
    });
    closing({ close: () => transport.close() });
    await transport.open();

    let incarnation = 1;
    let latest: Caller | null = null; // Open one connection at a time, so that thousands of them are not retained.
    closing({ close: () => latest?.close() });
    const greeting = async (): Promise<Caller> => {
      const hello = helloOf(1, 2, { protocol: protocolHash("orders", shape), incarnation, identity: identityOf() });
      const { caller, answer } = await Caller.greeting(port, hello);
      expect(answer).toMatchObject({ kind: "welcome" });
      latest = caller;
      return caller;
    };
    let next = 1;
    const frame = (messages: readonly Relay["message"][], first = next): Buffer => {
      const into = new Writer();
      openFrame(into, FRAME.messages);
      into.natural(first);
      for (const message of messages) codec.write(message, into);
      next = Math.max(next, first + messages.length);
      return closeFrame(into);
    };
    const put = async (caller: Caller, bytes: Buffer): Promise<void> => {
      if (!caller.socket.write(bytes)) await once(caller.socket, "drain");
    };

    const cut = frame([genuine]).subarray(0, -3);
    cut.writeUInt32BE(cut.length - 4, 0);
    const broken = [cut, Buffer.from([0, 0, 0, 1, 99]), Buffer.from([0x7f, 0xff, 0xff, 0xff, FRAME.messages])];
    /**
     * Sends a truncated message, a frame of an unknown kind, and one of two gigabytes. Each of them ends its
     * connection.
     */
    const malformed = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        incarnation += 1;
        next = 1;
        const caller = await greeting();
        caller.send(broken[i % broken.length] as Buffer);
        await caller.closed;
      }
    };
    const replayed = async (count: number): Promise<void> => {
      incarnation += 1;
      next = 1;
      const caller = await greeting();
      const before = counts.duplicates;
      await put(caller, frame([genuine]));
      for (let i = 0; i < count; i++) await put(caller, frame([genuine], 1));
      await vi.waitFor(() => expect(counts.duplicates - before).toBe(count), PATIENCE);
      await settled(caller);
    };
    const wrong = async (count: number): Promise<void> => {
      incarnation += 1;
      next = 1;
      const caller = await greeting();
      for (let sent = 0; sent < count; sent += wronglySigned.length) await put(caller, frame(wronglySigned));
      await settled(caller);
    };
    /** Resolves once everything sent on this connection has been acknowledged. */
    const settled = async (caller: Caller): Promise<void> => {
      const last = next - 1;
      await vi.waitFor(() => expect(caller.answers.at(-1)).toEqual({ kind: "ack", received: last }), PATIENCE);
      caller.close();
      await caller.closed;
    };

    let connections = 0;
    const grown = await grownBytes(async (share) => {
      connections += Math.ceil(share / 10);
      await malformed(Math.ceil(share / 10));
      await replayed(share);
      await wrong(share);
    }, each);
    expect(grown).toBeLessThan(10 * MIB);
    expect(counts.duplicates).toBe(each);
    expect(counts.wrongSignatures[1]).toBeGreaterThanOrEqual(each);
    expect(counts.refused).toEqual({ malformed: connections });
    expect(Object.keys(counts.wrongSignatures)).toEqual(["1"]);
    expect(await target.shown('coterie_wrong_signatures_total{peer="1"}')).toBe(counts.wrongSignatures[1]);
    expect(await target.shown("coterie_duplicates_total")).toBe(each);
    expect(await target.shown('coterie_refused_total{reason="malformed"}')).toBe(counts.refused.malformed);
    expectUnharmed(target, [WRONG, /\(malformed\)/]);
    expect(obeyed(target)).toEqual(["attack"]); // It was obeyed once, although the order came repeatedly.
  }

  test("300 of them", () => attacked(150));
  test("10,000 of them", { tags: ["long"] }, () => attacked(4_770));
  test("100,000 of them", { tags: ["larger"] }, () => attacked(47_700));
});

describe("over UDP", () => {
  async function attacked(each: number): Promise<void> {
    const target = victim();
    const { counts, log } = target;
    const [port] = (await freePorts(1)) as [number];
    const place = { ...loopbackPlace(port), key: "a secret of the members" };
    const member = (self: NodeId, around: Pick<Victim, "counts" | "log">): UdpMulticast<Relay["message"]> =>
      closing(
        udpMulticast<Relay["message"]>({
          platform: realPlatform,
          cluster: "test",
          self,
          members: [1, 2],
          protocol: "orders",
          shape,
          place,
          maxMessageBytes: 20_000,
          injector: faultInjector(realPlatform.random),
          ...around,
          deliver: (from, message, id) => self === 2 && target.host.receive(from, message, id),
          onLost: () => {},
          fallback: () => ({ id: () => "-", lost: null }),
          linked: () => [],
          onFatal: (error) => target.failures.push(error),
        }),
      );
    const own = member(2, { counts, log });
    const attacker = member(1, { counts: newCounts(), log: createLog(() => {}) });
    const stranger = createSocket({ type: "udp4", reuseAddr: true });
    closing({ close: () => new Promise((resolve) => stranger.close(() => resolve(null))) });
    await new Promise<void>((resolve) => stranger.bind(place.port, place.group, resolve));
    stranger.addMembership(place.group, place.interface);
    stranger.setMulticastInterface(place.interface);
    const format = new DatagramFormat({
      cluster: "test",
      protocol: protocolHash("orders", shape),
      key: place.key,
    });
    let overheard: Buffer | undefined;
    stranger.on("message", (datagram) => {
      const opened = format.open(datagram);
      const isGenuine = !isObjection(opened) && opened.header.from === 1 && opened.header.kind === "messages";
      if (isGenuine) overheard ??= Buffer.from(datagram);
    });
    await Promise.all([own.open(), attacker.open()]);
    await vi.waitFor(() => expect([...own.reached, ...attacker.reached]).toEqual([1, 2]), PATIENCE);
    attacker.send(genuine);
    await vi.waitFor(() => expect(obeyed(target)).toEqual(["attack"]), PATIENCE);
    const heard = await vi.waitFor(() => overheard as Buffer, PATIENCE);
    expect(heard).toBeDefined();
    const opened = format.open(heard);
    if (isObjection(opened)) throw new Error(opened[1]);
    const { run } = opened.header;

    /**
     * Sends a few datagrams at a time, because the kernel drops those that arrive faster than a busy process reads
     * them.
     */
    const said = async (datagrams: number, make: (index: number) => Uint8Array, read: () => number): Promise<void> => {
      const before = read();
      for (let done = 0; done < datagrams; ) {
        const some = Math.min(FEW, datagrams - done);
        for (let i = 0; i < some; i++) stranger.send(make(done + i), place.port, place.group);
        done += some;
        await taken(() => read() - before === done);
      }
    };
    const refused = (reason: "malformed" | "replayed" | "forged") => () => counts.refused[reason] ?? 0;
    const noise = (index: number): Uint8Array => Buffer.alloc(1 + (index % 300), index);
    const large = Buffer.alloc(60_000, 7);
    /**
     * The number of the next datagram. Each is sealed with the right key and claims to belong to a message with a
     * billion fragments.
     */
    let number = 1_000_000;
    const pieces = (): Uint8Array => {
      const body = new Writer(64);
      for (const value of [4_711, 0, 1e9]) body.natural(value);
      body.append(Buffer.alloc(1_000));
      number += 1;
      const header: Header = { kind: "fragment", from: 1, run, number, excluded: [] };
      return format.build(header, body.bytes(), format.keyOf(1, run));
    };
    const forged = (index: number): Uint8Array => {
      const changed = Buffer.from(heard);
      changed[changed.length - 1 - (index % 8)] = (changed.at(-1 - (index % 8)) as number) ^ 1;
      return changed;
    };
    const wrong = async (values: number): Promise<void> => {
      for (let done = 0; done < values; ) {
        const before = counts.wrongSignatures[1] ?? 0;
        for (let i = 0; i < FEW; i += wronglySigned.length) for (const message of wronglySigned) attacker.send(message);
        done += FEW;
        await taken(() => (counts.wrongSignatures[1] ?? 0) - before === FEW);
      }
    };

    const grown = await grownBytes(async (share) => {
      await said(share, (index) => (index % 100 === 0 ? large : noise(index)), refused("malformed"));
      await said(share, () => heard, refused("replayed"));
      await said(share, forged, refused("forged"));
      await wrong(share);
    }, each);
    // With such numbers, the attacker blocks its own later datagrams, so these must come last.
    const grownAgain = await grownBytes((share) => said(share, pieces, refused("malformed")), Math.ceil(each / 2));
    expect(Math.max(grown, grownAgain)).toBeLessThan(10 * MIB);
    for (const reason of ["malformed", "replayed", "forged"] as const) {
      expect(counts.refused[reason]).toBeGreaterThanOrEqual(each);
      expect(await target.shown(`coterie_refused_total{reason="${reason}"}`)).toBe(counts.refused[reason]);
    }
    expect(counts.wrongSignatures[1]).toBeGreaterThanOrEqual(each);
    expect(await target.shown('coterie_wrong_signatures_total{peer="1"}')).toBe(counts.wrongSignatures[1]);
    expectUnharmed(target, [WRONG, /\(malformed\)/, /\(replayed\)/, /\(forged\)/]);
    expect(obeyed(target)).toEqual(["attack"]);
  }

  test("180 of them", () => attacked(40));
  test("10,000 of them", { tags: ["long"] }, () => attacked(2_230));
  test("100,000 of them", { tags: ["larger"] }, () => attacked(22_300));
});
