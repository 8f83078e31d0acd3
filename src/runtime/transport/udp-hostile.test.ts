/**
 * Attacks on a group. After each of them, the member must be running, must still receive from its peer, and must have
 * counted the attack and logged it once.
 */

import { createSocket, type Socket } from "node:dgram";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { heapUsedBytes } from "../../../test/network/heap.ts";
import { seededRandom } from "../../../test/network/seed.ts";
import { numbered, numberedShape } from "../../../test/network/transport-under-test.ts";
import { loopbackPlace, type UdpUnderTest, udpUnderTest } from "../../../test/network/udp-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { RefusedReason } from "../metrics.ts";
import { Writer } from "../wire.ts";
import { protocolHash } from "./frames.ts";
import { DATAGRAM_VERSION, DatagramFormat, type Header, heardCodec, isObjection } from "./udp-datagram.ts";
import type { UdpPlace } from "./udp-place.ts";

const MIB = 2 ** 20;
const closing = closedAfterEach();
const key = "a secret of the members";

let place: UdpPlace;
let member: UdpUnderTest;
let friend: UdpUnderTest;
let stranger: Socket;
/** The group's datagrams, as an eavesdropper sees them. */
let overheard: Buffer[];
let sent: number;

const underTest = (self: number): UdpUnderTest =>
  closing(udpUnderTest({ self, members: [0, 1], place, maxMessageBytes: 20_000 }));

async function beginMembers(): Promise<void> {
  [member, friend] = [underTest(0), underTest(1)];
  sent = 0;
  await Promise.all([member.open(), friend.open()]);
}

async function begin(shared: string | null): Promise<void> {
  const [port] = await freePorts(1);
  place = { ...loopbackPlace(port as number), key: shared };
  await beginMembers();
  stranger = createSocket({ type: "udp4", reuseAddr: true });
  closing({ close: () => new Promise((resolve) => stranger.close(() => resolve(null))) });
  await new Promise<void>((resolve) => stranger.bind(place.port, place.group, resolve));
  stranger.addMembership(place.group, place.interface);
  stranger.setMulticastInterface(place.interface);
  overheard = [];
  stranger.on("message", (datagram) => overheard.push(Buffer.from(datagram)));
  await expectGoodTraffic();
}

const say = (datagram: Uint8Array): void => stranger.send(datagram, place.port, place.group);

/** Resolves once all of the attacker's datagrams have arrived, by sending noise after them and waiting for that. */
async function expectAllTaken(): Promise<void> {
  const before = member.counts.refused.malformed ?? 0;
  say(Buffer.from("noise"));
  await vi.waitFor(() => expect(member.counts.refused.malformed).toBe(before + 1), PATIENCE);
}

/** Checks that messages from node 1 still arrive, and that none of the attacker's datagrams became a message. */
async function expectGoodTraffic(): Promise<void> {
  await vi.waitFor(() => expect([...friend.transport.reached, ...member.transport.reached]).toEqual([0, 1]), PATIENCE);
  const before = member.from(1).filter((value) => value > 0).length;
  for (let i = 0; i < 5; i++) {
    sent += 1;
    friend.transport.send(numbered(sent));
  }
  await vi.waitFor(() => expect(member.from(1).length).toBeGreaterThanOrEqual(before + 5), PATIENCE);
  expect(member.from(1)).toEqual(Array.from({ length: sent }, (_, i) => i + 1));
  expect(member.fatal).toEqual([]);
}

/** Checks that the attack was counted and logged once. */
async function expectRefused(reason: RefusedReason, times: number, words: string): Promise<void> {
  await vi.waitFor(() => expect(member.counts.refused[reason]).toBe(times), PATIENCE);
  const lines = member.lines.filter((line) => line.includes(`(${reason})`));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(words);
}

const format = (change: { cluster?: string; protocol?: string; key?: string | null } = {}): DatagramFormat =>
  new DatagramFormat({
    cluster: change.cluster ?? "test",
    protocol: protocolHash(change.protocol ?? "numbers", numberedShape),
    key: change.key === undefined ? (place.key ?? null) : change.key,
  });

/** Returns a datagram with this header, sealed by its maker. */
function made(header: Partial<Header>, body: Uint8Array, by = format()): Buffer {
  const whole: Header = { kind: "messages", from: 1, run: 7, number: 1, excluded: [], ...header };
  return by.build(whole, body, by.keyOf(whole.from, whole.run));
}

function headerOf(datagram: Buffer): Header {
  const opened = format().open(datagram);
  if (isObjection(opened)) throw new Error(opened[1]);
  return opened.header;
}

function hello(heard: { node: number; run: number }[]): Buffer {
  const into = new Writer(64);
  heardCodec.write(heard, into);
  return into.bytes();
}

describe.each([null, key])("a group with the key %j", (shared) => {
  beforeEach(() => begin(shared));
  afterEach(expectGoodTraffic);

  test("ignores noise", async () => {
    const chance = seededRandom();
    // The first byte is lower than any letter. Two random bytes would match the magic number once in 65,536 times.
    const noise = (length: number): Buffer =>
      Buffer.from(Array.from({ length }, (_, at) => chance.below(at === 0 ? 64 : 256)));
    for (let sent = 0; sent < 200; sent += 20) {
      for (let i = 0; i < 20; i++) say(noise(chance.below(300)));
      // The kernel drops datagrams that arrive faster than a busy process reads them.
      await vi.waitFor(() => expect(member.counts.refused.malformed).toBe(sent + 20), PATIENCE);
    }
    await expectRefused("malformed", 200, "it does not start like a Coterie datagram");
  });

  test("ignores truncated or modified datagrams", async () => {
    const chance = seededRandom();
    const [genuine] = overheard.filter((datagram) => headerOf(datagram).from === 1) as [Buffer];
    for (let length = 0; length < genuine.length; length++) say(genuine.subarray(0, length));
    if (shared === null) return; // Without a key, careful modifications are accepted.
    for (let i = 0; i < 300; i++) {
      const changed = Buffer.from(genuine);
      const at = 12 + chance.below(changed.length - 12);
      changed[at] = (changed[at] as number) ^ (1 + chance.below(255));
      say(changed);
    }
    await vi.waitFor(() => {
      expect(member.counts.refused.malformed ?? 0).toBeGreaterThan(12);
      expect(member.counts.refused.forged ?? 0).toBeGreaterThan(0);
    }, PATIENCE);
  });

  test("rejects another version, cluster or protocol, and senders that are not members or claim its own id", async () => {
    const old = made({}, hello([]));
    old[2] = DATAGRAM_VERSION + 1;
    for (let i = 0; i < 3; i++) {
      say(old);
      say(made({}, hello([]), format({ cluster: "other" })));
      say(made({}, hello([]), format({ protocol: "letters" })));
      say(made({ from: 2 }, hello([])));
      say(made({ from: 0 }, hello([])));
    }
    await expectRefused("wrong-version", 3, `expected datagrams of version ${DATAGRAM_VERSION}, got`);
    await expectRefused("wrong-cluster", 3, "another cluster on the same group and port");
    await expectRefused("wrong-protocol", 3, "expected the same protocol");
    await expectRefused("unknown-node", 3, "expected one of the members, got node 2");
    await expectRefused("duplicate-id", 3, "another process uses the id 0");
  });

  test("rejects datagrams of another key, or without one", async () => {
    for (let i = 0; i < 3; i++) say(made({ kind: "hello" }, hello([]), format({ key: "somebody else's secret" })));
    const words = shared === null ? "it is sealed, but this member has no key" : "its seal does not match";
    await expectRefused("forged", 3, words);
    if (shared === null) return;
    say(made({ kind: "hello" }, hello([]), format({ key: null })));
    await vi.waitFor(() => expect(member.counts.refused.forged).toBe(4), PATIENCE);
  });

  test("accepts no message of a run that has not named the member's own", async () => {
    const body = new Writer(64);
    body.natural(1);
    say(made({ kind: "messages", run: 4711 }, body.bytes()));
    say(made({ kind: "hello", run: 4711, number: 2 }, hello([{ node: 0, run: 1 }])));
    say(made({ kind: "messages", run: 4711, number: 3 }, body.bytes()));
    await expectAllTaken();
    expect(member.transport.reached.has(1)).toBe(true);
  });

  test("accepts nothing of a superseded run", async () => {
    const old = overheard.filter((datagram) => headerOf(datagram).from === 1);
    friend.close();
    await vi.waitFor(() => expect(member.transport.reached.has(1)).toBe(false), PATIENCE);
    friend = underTest(1);
    await friend.open();
    await expectGoodTraffic();
    const before = member.counts.refused["old-run"] ?? 0;
    for (const datagram of old) say(datagram);
    await expectRefused("old-run", before + old.length, "an earlier run of the process");
  });
});

describe("a group with a key", () => {
  beforeEach(() => begin(key));

  test("accepts no datagram twice", async () => {
    const genuine = overheard.filter((datagram) => headerOf(datagram).from === 1);
    const before = overheard.length;
    for (const datagram of genuine) say(datagram);
    await vi.waitFor(() => expect(overheard.length).toBeGreaterThanOrEqual(before + genuine.length), PATIENCE);
    await expectRefused("replayed", genuine.length, "has already been received");
    await expectGoodTraffic();
  });

  test("still reaches its members when hellos of earlier processes are replayed", async () => {
    const old = overheard.filter((datagram) => {
      const { kind, from } = headerOf(datagram);
      return kind === "hello" && from === 1;
    });
    expect(old.length).toBeGreaterThan(0);
    member.close();
    friend.close();
    await beginMembers();
    await expectGoodTraffic();
    for (const datagram of old) {
      say(datagram);
      await expectAllTaken();
      expect([...member.transport.reached]).toEqual([1]);
    }
    expect(member.counts.refused["old-run"]).toBeUndefined(); // That run cannot be distinguished from a new one.
  });

  test("sends nothing that an eavesdropper could read", () => {
    friend.transport.send(numbered(sent + 1, "the payload in clear"));
    return vi.waitFor(() => {
      expect(member.from(1)).toHaveLength(sent + 1);
      expect(overheard.some((datagram) => datagram.includes("the payload"))).toBe(false);
    }, PATIENCE);
  });
});

describe("a member of a group without a key", () => {
  beforeEach(() => begin(null));
  afterEach(expectGoodTraffic);

  test("accepts no message in single bytes", async () => {
    const { run } = headerOf(overheard.find((datagram) => headerOf(datagram).from === 1) as Buffer);
    for (let i = 0; i < 40; i++) {
      const body = new Writer(64);
      for (const value of [1_000, i, 40]) body.natural(value);
      body.append(Buffer.alloc(1));
      say(made({ kind: "fragment", run, number: 10_000 + i }, body.bytes()));
    }
    // All fragments except the last.
    await expectRefused("malformed", 39, "fragment 0 of 40 of a message has 1 bytes");
  });

  test("bounds incomplete messages, for anything that a peer begins", async () => {
    const { run } = headerOf(overheard.find((datagram) => headerOf(datagram).from === 1) as Buffer);
    const heardBefore = member.counts.datagramsReceived;
    const expectHeard = (datagrams: number): Promise<void> =>
      vi.waitFor(() => {
        expect(member.counts.datagramsReceived - heardBefore).toBeGreaterThanOrEqual(datagrams);
      }, PATIENCE);
    overheard = [];
    stranger.removeAllListeners("message");
    const usedBytes = (): number => heapUsedBytes() + process.memoryUsage().external;
    const before = usedBytes();
    for (let i = 0; i < 2_000; i++) {
      const body = new Writer(16_000);
      for (const value of [1_000 + i, 0, 2]) body.natural(value);
      body.append(Buffer.alloc(15_000));
      say(made({ kind: "fragment", run, number: 10_000 + i }, body.bytes()));
      if (i % 10 === 9) await expectHeard(i + 1);
    }
    // This is much less than the 28 MiB that arrived. It may take a while until memory is released.
    await vi.waitFor(() => expect(usedBytes() - before).toBeLessThan(16 * MIB), PATIENCE);
  });
});
