/** Checks two transports that can reach each other, on both the real and the simulated platform. */
import { describe, expect, test } from "vitest";
import { numbered, type TransportUnderTest, transportUnderTest } from "../../../test/network/transport-under-test.ts";
import { type Ground, grounds } from "../../../test/platform/ground.ts";
import { formatHostPort } from "../host-port.ts";
import type { Limits } from "./limits.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

/** Creates node 0 or 1, without opening it. */
function transportOn({ platforms, addresses, closing }: Ground, self: 0 | 1, limits: Partial<Limits> = {}) {
  const platform = platforms[self];
  const under = transportUnderTest({ platform, self, addresses, limits });
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closed ??= under.close();
    return closed;
  };
  return closing({ ...under, close });
}

async function opened(ground: Ground, self: 0 | 1, limits?: Partial<Limits>): Promise<TransportUnderTest> {
  const under = transportOn(ground, self, limits);
  await under.open();
  return under;
}

const pair = (ground: Ground, limits?: Partial<Limits>) =>
  Promise.all([opened(ground, 0, limits), opened(ground, 1, limits)] as const);

/** Waits until the node's link to node 1 is open. */
const linked = (ground: Ground, { transport }: TransportUnderTest): Promise<void> =>
  ground.until(() => expect(transport.peers[0]?.link).toBe("open"));

describe.each(grounds)("on the $name platform", ({ on }) => {
  test(
    "a message has the same id at both ends",
    on(async (ground) => {
      const [sender, receiver] = await pair(ground);
      const names = upTo(20).map((value) => sender.transport.send(1, numbered(value)).id());
      await ground.until(() => expect(receiver.from(0)).toHaveLength(20));
      expect(receiver.receivedIds).toEqual(names);
    }),
  );

  describe("a message", () => {
    test(
      "leaves as it was when it was sent, even if it is delayed",
      on(async (ground) => {
        const [sender, receiver] = await pair(ground);
        sender.injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 5, max: 5 } };
        const message = numbered(1);
        sender.transport.send(1, message);
        message.value = 2;
        await ground.until(() => expect(receiver.from(0)).toEqual([1]));
      }),
    );

    test(
      "may be as long as a frame, regardless of earlier messages in the same turn",
      on(async (ground) => {
        const [sender, receiver] = await pair(ground, { maxFrameBytes: 5_000 });
        for (const [i, length] of [200, 4_900, 10, 1_500, 3_600, 4_970, 5].entries())
          sender.transport.send(1, numbered(i + 1, "x".repeat(length)));
        await ground.until(() => expect(receiver.from(0)).toEqual(upTo(7)));
        expect(receiver.counts.refused).toEqual({});
      }),
    );

    test.each([0, 5])("of a wrong shape is rejected at the sender, also with a delay of %i ms", (max) =>
      on(async (ground) => {
        const [sender, receiver] = await pair(ground, { maxFrameBytes: 5_000 });
        sender.injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 0, max } };
        sender.transport.send(1, numbered(1));
        expect(() => sender.transport.send(1, numbered(0.5))).toThrow("a natural number");
        expect(() => sender.transport.send(1, { ...numbered(7), more: [1, -1] })).toThrow("a natural number");
        expect(() => sender.transport.send(1, numbered(7, "x".repeat(5_000)))).toThrow(
          "does not fit in a frame of 5000 bytes",
        );
        sender.transport.send(1, numbered(2));
        await ground.until(() => expect(receiver.from(0)).toEqual([1, 2]));
        expect(receiver.counts.refused).toEqual({});
      })(),
    );
  });

  describe("a peer that restarts", () => {
    test(
      "receives later messages; messages for its old process are reported lost",
      on(async (ground) => {
        const sender = await opened(ground, 0);
        const old = await opened(ground, 1);
        await linked(ground, sender);
        sender.transport.send(1, numbered(1));
        await ground.until(() => expect(old.from(0)).toEqual([1]));
        await ground.until(() => expect(sender.transport.peers[0]?.queuedBytes).toBe(0));
        await old.close();
        const names = [2, 3, 4].map((value) => sender.transport.send(1, numbered(value)).id());
        const again = await opened(ground, 1);
        await ground.until(() => expect(sender.lost.flatMap(({ ids }) => ids)).toEqual(names));
        expect(sender.lost.every(({ to, why }) => to === 1 && why === "crashed")).toBe(true);
        expect(sender.counts.lost).toEqual({ crashed: 3 });
        await linked(ground, sender);
        sender.transport.send(1, numbered(5));
        await ground.until(() => expect(again.from(0)).toEqual([5]));
      }),
    );

    test(
      "that has never connected receives messages sent before it started",
      on(async (ground) => {
        const sender = await opened(ground, 0);
        for (const value of upTo(100)) sender.transport.send(1, numbered(value, "x".repeat(100)));
        await sender.transport.tried();
        const receiver = await opened(ground, 1);
        await ground.until(() => expect(receiver.from(0)).toEqual(upTo(100)));
      }),
    );
  });

  describe("a running peer whose address refuses connections for a while", () => {
    /**
     * Connects both nodes and sends three messages. Then node 0 gets an address for node 1 that refuses connections.
     */
    async function refused(ground: Ground, limits?: Partial<Limits>) {
      const [sender, receiver] = await pair(ground, limits);
      await linked(ground, sender);
      await linked(ground, receiver);
      for (const value of upTo(3)) sender.transport.send(1, numbered(value));
      sender.transport.setPeer(1, ground.refusing);
      return { sender, receiver, reconnect: () => sender.transport.setPeer(1, ground.addresses[1]) };
    }

    test(
      "receives every message in order",
      on(async (ground) => {
        const { sender, receiver, reconnect } = await refused(ground);
        for (const value of [4, 5, 6]) sender.transport.send(1, numbered(value));
        await ground.sleep(200);
        for (const value of [7, 8, 9]) sender.transport.send(1, numbered(value));
        reconnect();
        sender.transport.send(1, numbered(10));
        await ground.until(() => expect(receiver.from(0)).toEqual(upTo(10)));
        expect(sender.lost).toEqual([]);
        expect(sender.counts.lost).toEqual({});
      }),
    );

    test(
      "receives every message that the bounded queue accepted; others are rejected when they are sent",
      on(async (ground) => {
        const { sender, receiver, reconnect } = await refused(ground, { maxQueueBytes: 20_000 });
        await ground.sleep(200);
        const sent = upTo(40).map((i) => [3 + i, sender.transport.send(1, numbered(3 + i, "x".repeat(1_000))).lost]);
        expect(new Set(sent.map(([, lost]) => lost))).toEqual(new Set([null, "overflow"]));
        expect(sender.transport.peers[0]?.queuedBytes).toBeLessThan(22_000);
        reconnect();
        const accepted = sent.filter(([, lost]) => lost === null).map(([value]) => value);
        await ground.until(() => expect(receiver.from(0)).toEqual([1, 2, 3, ...accepted]));
        expect(sender.lost).toEqual([]);
      }),
    );
  });

  test(
    "a queue of small messages is bounded, too",
    on(async (ground) => {
      const [sender] = await pair(ground, { maxQueueBytes: 100_000 });
      sender.injector.faults = { cutTo: [], dropRate: 0, delayMs: { min: 60_000, max: 60_000 } };
      const lost = upTo(2_000).filter((value) => sender.transport.send(1, numbered(value)).lost === "overflow");
      expect(lost.length).toBeGreaterThan(1_000); // Each message takes 5 bytes, plus one entry in the queue.
    }),
  );

  test(
    "a port in use is reported in one sentence",
    on(async (ground) => {
      await opened(ground, 0);
      const second = transportOn(ground, 0);
      const address = formatHostPort(ground.addresses[0]);
      await expect(second.open()).rejects.toThrow(`cannot listen on ${address}: the address is in use`);
    }),
  );

  test(
    "a message to an unknown node is an error of the caller",
    on(async (ground) => {
      const [sender] = await pair(ground);
      expect(() => sender.transport.send(7, numbered(1))).toThrow(
        "expected a message to one of the nodes 1, got one to 7",
      );
    }),
  );
});
