/**
 * Attacks by outsiders. After each of them, the member must be running, must still exchange messages with its peer, and
 * must have counted the attack and logged it once.
 */

import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Caller, helloOf, identityOf, messagesFrame } from "../../../test/network/caller.ts";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { heapUsedBytes } from "../../../test/network/heap.ts";
import { expectNothingLeft, handlesAtRest } from "../../../test/network/open-handles.ts";
import { seededRandom } from "../../../test/network/seed.ts";
import {
  type Around,
  type Numbered,
  numbered,
  numberedShape,
  type TransportUnderTest,
  transportUnderTest,
} from "../../../test/network/transport-under-test.ts";
import { PATIENCE } from "../../../test/patience.ts";
import type { Random } from "../../core/random.ts";
import { list, natural, text, variants } from "../../core/shape.ts";
import type { RefusedReason } from "../metrics.ts";
import { FRAME, helloCodec, OTHER_PROTOCOL } from "./frames.ts";

// These run in reverse order: check good traffic, close everything, then check that nothing is left.
afterEach(() => expectNothingLeft(atRest));
const closing = closedAfterEach();
afterEach(async () => {
  await expectGoodTraffic();
  expect(member.fatal).toEqual([]);
});

/** Longer than any test takes, even on a busy machine. Tests that wait for the timeout use a shorter one. */
const PATIENT_HANDSHAKE_MS = 300_000;
const SHORT_HANDSHAKE_MS = 400;
const MAX_STRANGERS = 8;

let ports: Record<number, number>;
/**
 * The member under attack, which is node 0, and node 1, which keeps sending to it. Node 2 is on the list but has no
 * process.
 */
let member: TransportUnderTest;
let friend: TransportUnderTest;
let atRest: string[];
let sent: number;

beforeEach(async () => {
  atRest = await handlesAtRest();
  await begin(PATIENT_HANDSHAKE_MS);
});

async function begin(handshakeTimeoutMs: number): Promise<void> {
  const [zero, one, two] = (await freePorts(3)) as [number, number, number];
  ports = { 0: zero, 1: one, 2: two };
  const limits = { handshakeTimeoutMs, maxStrangers: MAX_STRANGERS, maxFrameBytes: 4_096 };
  member = closing(transportUnderTest({ self: 0, ports, limits }));
  friend = closing(transportUnderTest({ self: 1, ports, limits }));
  await member.open();
  await friend.open();
  sent = 0;
  await expectGoodTraffic();
}

/** Starts members with a short timeout, for tests that wait for it. */
async function beginInHaste(): Promise<void> {
  await begin(SHORT_HANDSHAKE_MS);
  member.counts.refused = {}; // If this process was paused, the friend's own hello may have come too late at first.
}

/** Checks that node 1 and the member still exchange messages, in order and without losses. */
async function expectGoodTraffic(): Promise<void> {
  for (let i = 0; i < 10; i++) {
    sent += 1;
    friend.transport.send(0, numbered(sent));
    member.transport.send(1, numbered(sent));
  }
  const all = Array.from({ length: sent }, (_, i) => i + 1);
  await vi.waitFor(() => {
    expect(member.from(1)).toEqual(all);
    expect(friend.from(0)).toEqual(all);
  }, PATIENCE);
}

/** Returns the reasons in the member's log. */
const saidReasons = (): string[] =>
  member.lines.flatMap((line) => /^refused a connection from [\d.]+ \(([a-z-]+)\): ./.exec(line)?.[1] ?? []);

/** Checks that this many connections were refused for this reason, and that nothing else was logged. */
async function expectRefused(reason: RefusedReason, times: number): Promise<void> {
  await vi.waitFor(() => expect(member.counts.refused).toEqual({ [reason]: times }), PATIENCE);
  expect(saidReasons()).toEqual([reason]);
}

const port = (): number => ports[0] as number;

describe("10,000 random and mutated frames", () => {
  const hello = helloCodec.frame(helloOf(2, 0));

  function mutated(bytes: Buffer, chance: Random): Buffer {
    const copy = Buffer.from(bytes);
    for (let changes = 1 + chance.below(3); changes > 0; changes--) copy[chance.below(copy.length)] = chance.below(256);
    // Keep the length field in most mutations, so that they reach the code after it.
    if (chance.below(4) > 0) bytes.copy(copy, 0, 0, 4);
    return chance.below(10) === 0 ? copy.subarray(0, 1 + chance.below(copy.length)) : copy;
  }

  function noise(chance: Random): Buffer {
    const bytes = Buffer.from(Array.from({ length: 5 + chance.below(60) }, () => chance.below(256)));
    if (chance.below(3) > 0) {
      bytes.writeUInt32BE(bytes.length - 4, 0); // A valid frame with random content.
      bytes[4] = 1 + chance.below(8);
    }
    return bytes;
  }

  function attempt(chance: Random): Buffer {
    const messages = (): Buffer => messagesFrame(1 + chance.below(3), 1 + chance.below(5));
    switch (chance.below(5)) {
      case 0:
        return noise(chance);
      case 1:
        return mutated(hello, chance);
      case 2:
        return Buffer.concat([hello, noise(chance)]);
      case 3:
        return Buffer.concat([hello, messages(), mutated(messages(), chance)]);
      default:
        return Buffer.concat([hello, mutated(messages(), chance)]);
    }
  }

  test("crash nothing, consume no memory, and are logged once for each reason", {
    tags: ["long"],
  }, async () => {
    const chance = seededRandom();
    const call = async (): Promise<void> => {
      const caller = await Caller.to(port());
      caller.socket.end(attempt(chance));
      await caller.closed;
    };
    const calls = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i += 4) await Promise.all([call(), call(), call(), call()]);
    };
    await calls(1_000);
    const before = heapUsedBytes();
    await calls(9_000);
    expect(heapUsedBytes() - before).toBeLessThan(20 * 2 ** 20);
    expect(member.counts.refused.malformed).toBeGreaterThan(3_000);
    expect(new Set(saidReasons()).size).toBe(saidReasons().length);
    // A different member list is logged per member.
    const counted = Object.keys(member.counts.refused).filter((reason) => reason !== "wrong-members");
    expect(
      saidReasons()
        .filter((reason) => reason !== "wrong-members")
        .sort(),
    ).toEqual(counted.sort());
    expect(member.identity.disagreements.size).toBeLessThanOrEqual(128);
  });
});

describe("silent connections", () => {
  test("are closed after a while", async () => {
    await beginInHaste();
    const silent = await Promise.all([Caller.to(port()), Caller.to(port())]);
    for (const caller of silent) closing(caller);
    await Promise.all(silent.map(({ closed }) => closed));
    await expectRefused("handshake-timeout", 2);
  });

  test("are closed after a while, even if half a hello has arrived", async () => {
    await beginInHaste();
    const caller = closing(await Caller.to(port()));
    caller.send(helloCodec.frame(helloOf(2, 0)).subarray(0, 20));
    await caller.closed;
    await expectRefused("handshake-timeout", 1);
  });

  test("cannot keep members out: beyond the limit the oldest is closed", async () => {
    const silent: Caller[] = [];
    for (let i = 0; i < MAX_STRANGERS + 3; i++) silent.push(closing(await Caller.to(port())));
    await Promise.all(silent.slice(0, 3).map(({ closed }) => closed));
    expect(member.counts.refused).toEqual({ "too-many-strangers": 3 });
    expect(saidReasons()).toEqual(["too-many-strangers"]);
    const { answer } = await Caller.greeting(port(), helloOf(2, 0));
    expect(answer).toMatchObject({ kind: "welcome" });
    for (const caller of silent) caller.close();
  });

  test("are refused by the hundred", async () => {
    const all = await Promise.all(
      // Some connections are reset before they are established.
      Array.from({ length: 300 }, () => Caller.to(port()).catch(() => null)),
    );
    const made = all.flatMap((caller) => (caller === null ? [] : [closing(caller)]));
    await vi.waitFor(() => {
      expect(made.filter(({ socket }) => !socket.closed).length).toBeLessThanOrEqual(MAX_STRANGERS);
    }, PATIENCE);
    expect(Object.keys(member.counts.refused)).toEqual(["too-many-strangers"]);
    expect(member.counts.refused["too-many-strangers"]).toBeGreaterThan(200);
    expect(saidReasons()).toEqual(["too-many-strangers"]);
  });
});

const REMEDY = "they will have no link until both are started with the same list";

describe("a hello that does not match this member", () => {
  test.each([
    [
      "wrong-version",
      { version: 9, oldest: 9 },
      "expected wire version 1, got 9: upgrade the members one release at a time",
    ],
    ["wrong-cluster", { cluster: "a\nb" }, 'expected cluster "test", got "a\nb"'],
    ["wrong-protocol", { protocol: 7 }, OTHER_PROTOCOL],
    ["wrong-node", { to: 1 }, "this is node 0, but the caller expected node 1"],
    ["unknown-node", { from: 9 }, "expected one of the nodes 1, 2, got 9"],
    ["unknown-node", { from: 0 }, "expected one of the nodes 1, 2, got 0"],
  ] as const)("is refused: %s", async (reason, change, detail) => {
    for (let i = 0; i < 3; i++) {
      const { caller, answer } = await Caller.greeting(port(), helloOf(2, 0, change));
      expect(answer).toEqual({ kind: "refuse", reason, detail, identity: identityOf() });
      await caller.closed;
    }
    await expectRefused(reason, 3);
    expect(member.lines.join()).not.toContain("\n");
  });

  test.each([2, 9])("is refused if node %i has a different list of members, and both log it", async (from) => {
    const theirs = identityOf({ group: "0, 2, 9" });
    const detail = `node ${from} has the members 0, 2, 9, but this node has 0, 1, 2: ${REMEDY}`;
    for (let i = 0; i < 2; i++) {
      const { caller, answer } = await Caller.greeting(port(), helloOf(from, 0, { identity: theirs }));
      expect(answer).toEqual({ kind: "refuse", reason: "wrong-members", detail, identity: identityOf() });
      await caller.closed;
    }
    expect(member.counts.refused).toEqual({ "wrong-members": 2 });
    expect(member.lines).toEqual([`wrong-members: ${detail}`]);
    const known = { reason: "wrong-members", detail, members: "0, 2, 9" };
    expect([...member.identity.disagreements]).toEqual([[from, known]]);
    expect(member.disagreements).toEqual([[from, known]]); // This is reported once.
  });

  test("cannot end a disagreement in another's name: only an admitted node can", async () => {
    await Caller.greeting(port(), helloOf(2, 0, { identity: identityOf({ group: "0, 2" }) }));
    await vi.waitFor(() => expect(member.identity.disagreements.has(2)).toBe(true), PATIENCE);
    await Caller.greeting(port(), helloOf(2, 0));
    await vi.waitFor(() => expect(member.identity.disagreements.has(2)).toBe(false), PATIENCE);
    expect(member.disagreements.at(-1)).toEqual([2, null]);
  });

  test("is refused once, regardless of the bytes after it", async () => {
    const caller = closing(await Caller.to(port()));
    const wrong = helloCodec.frame(helloOf(2, 0, { cluster: "other" }));
    for (let i = 0; i < 50; i++) caller.send(wrong);
    await caller.closed;
    await expectRefused("wrong-cluster", 1);
  });

  test.each([
    ["a second hello", helloCodec.frame(helloOf(2, 0))],
    ["a message with the number 0", messagesFrame(0)],
    ["messages with numbers above Number.MAX_SAFE_INTEGER", messagesFrame(Number.MAX_SAFE_INTEGER - 1, 2)],
    ["a frame longer than allowed", Buffer.from([0, 0, 0x20, 0, FRAME.messages])],
  ])("nor is %s after the welcome", async (_what, bytes) => {
    const { caller } = await Caller.greeting(port(), helloOf(2, 0));
    closing(caller);
    caller.send(bytes);
    expect(await caller.answer("refuse")).toMatchObject({ reason: "malformed" });
    await caller.closed;
    await expectRefused("malformed", 1);
  });

  test("is read to its end, so that a refused peer learns why while it still sends", async () => {
    const { caller } = await Caller.greeting(port(), helloOf(2, 0));
    closing(caller);
    for (let i = 0; i < 50; i++) caller.send(Buffer.alloc(100_000, 0xff));
    expect(await caller.answer("refuse")).toMatchObject({ reason: "malformed" });
    await expectRefused("malformed", 1);
  });
});

describe("members with different protocols", () => {
  const { value, payload, more } = { value: natural, payload: text(2 ** 20), more: list(natural, 1_000) };
  test.each<[string, Partial<Around>]>([
    ["options of the protocol", { protocol: "numbers from 1" }],
    ["order of a message's fields", { shape: variants<Numbered>({ numbered: { payload, more, value } }) }],
  ])("refuse each other: different %s", async (_what, change) => {
    expect(variants<Numbered>({ numbered: { value, payload, more } })).toEqual(numberedShape);
    const other = closing(transportUnderTest({ self: 2, ports, ...change }));
    await other.open();
    const refusal = /\(wrong-protocol\): expected the same protocol, version and options/;
    await vi.waitFor(() => {
      expect(other.lines).toContainEqual(expect.stringMatching(refusal));
      expect(member.lines).toContainEqual(expect.stringMatching(refusal));
    }, PATIENCE);
    expect(member.from(2)).toEqual([]);
  });
});

describe("a second process with the same id", () => {
  test("is refused while the first is alive", async () => {
    const impostor = closing(
      transportUnderTest({ self: 1, ports: { ...ports, 1: (await freePorts(1))[0] as number } }),
    );
    await impostor.open();
    await vi.waitFor(
      () => expect(impostor.lines.join()).toContain("node 0 refuses this node (duplicate-id)"),
      PATIENCE,
    );
    expect(member.counts.refused["duplicate-id"]).toBeGreaterThan(0);
    expect(saidReasons()).toEqual(["duplicate-id"]);
    await impostor.close();
  });

  test("is accepted if the first is silent", async () => {
    const first = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 1 }));
    closing(first.caller).provesAlive = false;
    const second = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 2 }));
    closing(second.caller);
    expect(second.answer).toMatchObject({ kind: "welcome", received: 0 });
    await first.caller.closed;
    second.caller.send(messagesFrame(1, 3));
    await vi.waitFor(() => expect(member.from(2)).toEqual([1, 2, 3]), PATIENCE);
    expect(member.counts.refused).toEqual({});
  });

  test("is accepted only once, if several want to replace a silent one", async () => {
    const first = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 1 }));
    closing(first.caller).provesAlive = false;
    const rivals = await Promise.all(
      [2, 3, 4].map((incarnation) => Caller.greeting(port(), helloOf(2, 0, { incarnation }))),
    );
    for (const { caller } of rivals) closing(caller);
    expect(rivals.filter(({ answer }) => answer?.kind === "welcome")).toHaveLength(1);
    await expectRefused("duplicate-id", 2);
  });

  test("that was replaced during a pause, and comes back, is admitted without repeating its messages", async () => {
    const first = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 1 }));
    closing(first.caller).provesAlive = false;
    first.caller.send(messagesFrame(1, 3));
    await vi.waitFor(() => expect(member.from(2)).toEqual([1, 2, 3]), PATIENCE);
    const second = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 2 }));
    second.caller.close();
    await second.caller.closed;
    const back = await vi.waitFor(async () => {
      const again = await Caller.greeting(port(), helloOf(2, 0, { incarnation: 1 }));
      closing(again.caller);
      expect(again.answer).toMatchObject({ kind: "welcome", received: 3 });
      return again;
    }, PATIENCE);
    back.caller.send(messagesFrame(1, 5));
    await vi.waitFor(() => expect(member.from(2)).toEqual([1, 2, 3, 4, 5]), PATIENCE);
    expect(member.counts.duplicates).toBe(3);
  });

  test("may be the same process on a new connection, which continues its numbering", async () => {
    const { caller } = await Caller.greeting(port(), helloOf(2, 0));
    closing(caller).send(messagesFrame(1, 2));
    expect(await caller.answer("ack")).toEqual({ kind: "ack", received: 2 });
    const again = await Caller.greeting(port(), helloOf(2, 0));
    closing(again.caller);
    expect(again.answer).toMatchObject({ kind: "welcome", received: 2 });
    await caller.closed;
    again.caller.send(messagesFrame(2, 2));
    await vi.waitFor(() => expect(member.from(2)).toEqual([1, 2, 3]), PATIENCE);
    expect(member.counts.duplicates).toBe(1);
  });
});

describe("a slow reader", () => {
  test("of refusals does not block the member", async () => {
    const caller = closing(await Caller.to(port()));
    caller.socket.pause();
    caller.send(helloCodec.frame(helloOf(9, 0)));
    await expectRefused("unknown-node", 1);
    await vi.waitFor(() => {
      caller.send(Buffer.of(0)); // A caller that does not read notices the closed connection only when it writes.
      expect(caller.socket.destroyed).toBe(true);
    }, PATIENCE);
  });

  test("of acknowledgements is still received from", async () => {
    const { caller } = await Caller.greeting(port(), helloOf(2, 0));
    closing(caller).socket.pause();
    const count = 20_000;
    for (let first = 1; first <= count; first += 100) {
      if (!caller.socket.write(messagesFrame(first, 100))) await once(caller.socket, "drain");
    }
    await vi.waitFor(() => expect(member.from(2)).toHaveLength(count), PATIENCE);
    caller.socket.resume();
    await vi.waitFor(() => expect(caller.answers.at(-1)).toEqual({ kind: "ack", received: count }), PATIENCE);
  });
});
