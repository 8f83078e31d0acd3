import { describe, expect, test } from "vitest";
import { realPlatform } from "../../runtime/platform/real.ts";
import type { Sent } from "./channel-api.ts";
import { Sending, type SendingOptions } from "./channel-sending.ts";
import { MAX_PAYLOAD_BYTES, readBatch } from "./channel-text.ts";
import { CoordinationError } from "./coordination-error.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const OWNER = {};

interface Played {
  readonly sending: Sending;
  readonly handed: { number: number; values: unknown[] }[];
  mayHand: boolean;
  send(value: unknown, options?: Parameters<Sending["send"]>[1]): Promise<Sent | string>;
}

/**
 * Creates a sender whose algorithm is played by the test, and records the multicasts that it passes to the algorithm. A
 * failed send is recorded as its code and phase.
 */
function played(options: Partial<SendingOptions> = {}): Played {
  const handed: Played["handed"] = [];
  const sending: Sending = new Sending({
    platform: realPlatform,
    what: 'the channel "room"',
    maxWaiting: 10_000,
    bounds: { payloadBytes: MAX_PAYLOAD_BYTES, batchBytes: MAX_PAYLOAD_BYTES },
    settled: "delivered",
    carried: null,
    mayHand: () => it.mayHand,
    hand(text) {
      const { number, json } = readBatch(text);
      handed.push({ number, values: JSON.parse(json) as unknown[] });
    },
    ...options,
  });
  const it: Played = {
    sending,
    handed,
    mayHand: true,
    async send(value, given = {}) {
      try {
        return await sending.send(value, given, OWNER);
      } catch (error) {
        const { code, phase } = error as CoordinationError;
        return `${code} ${phase}`;
      }
    },
  };
  return it;
}

describe("sent messages", () => {
  test("of one turn share a multicast, and each gets its index", async () => {
    const it = played();
    const sends = [1, 2, 3].map((value) => it.send(value));
    await turn();
    expect(it.handed).toEqual([{ number: 1, values: [1, 2, 3] }]);
    it.sending.delivered(1, { id: "4.1.9", view: 4 });
    const places = ["4.1.9.0", "4.1.9.1", "4.1.9.2"];
    expect(await Promise.all(sends)).toEqual(places.map((id) => ({ id, view: 4 })));
    expect([it.sending.waiting, it.sending.inFlight]).toEqual([0, 0]);
  });

  test("gather while eight multicasts are in flight", async () => {
    const it = played();
    for (let value = 0; value < 20; value++) {
      void it.send(value);
      await turn();
    }
    expect(it.handed.map(({ values }) => values.length)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
    it.sending.delivered(3, { id: "a", view: 0 });
    await turn();
    expect(it.handed.at(-1)?.values).toEqual([8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
  });

  test("use up to 64 full multicasts, and 2 MiB, in flight", async () => {
    const it = played();
    const half = "x".repeat(MAX_PAYLOAD_BYTES / 2 - 3);
    const sends = Array.from({ length: 200 }, () => it.send(half));
    await turn();
    expect(sends).toHaveLength(200);
    expect(it.handed).toHaveLength(35); // Each multicast has 60,000 bytes.
    expect(new Set(it.handed.map(({ values }) => values.length))).toEqual(new Set([2]));
  });

  test("wait while the algorithm accepts none", async () => {
    const it = played();
    it.mayHand = false;
    const sent = it.send("a");
    await turn();
    expect(it.handed).toEqual([]);
    it.mayHand = true;
    it.sending.wake();
    await turn();
    it.sending.delivered(1, { id: "a", view: 0 });
    expect(await sent).toEqual({ id: "a.0", view: 0 });
  });

  test("are rejected with the amount when too many wait", async () => {
    const it = played({ maxWaiting: 2 });
    it.mayHand = false;
    void it.send(1);
    void it.send(2);
    expect(() => it.sending.send(3, {}, OWNER)).toThrow(
      '2 messages of 2 bytes are waiting to be sent on the channel "room", which is the maximum: await some of your sends',
    );
    const large = played();
    large.mayHand = false;
    const results = Array.from({ length: 300 }, () => large.send("x".repeat(59_000)));
    expect(await results.at(-1)).toBe("channel-full never-sent");
    expect(large.sending.waiting * 59_002).toBeLessThanOrEqual(16 * 1024 * 1024);
  });

  test("can be abandoned while they wait, and are then not delivered", async () => {
    const it = played();
    it.mayHand = false;
    const abort = new AbortController();
    const sends = [it.send(1, { timeoutMs: 5 }), it.send(2, { signal: abort.signal }), it.send(3)];
    abort.abort("not wanted");
    expect(await sends[0]).toBe("send-timeout never-sent");
    expect(await sends[1]).toBe("send-aborted never-sent");
    it.mayHand = true;
    it.sending.wake();
    await turn();
    expect(it.handed).toEqual([{ number: 1, values: [3] }]);
    expect(await it.send(4, { signal: abort.signal })).toBe("send-aborted never-sent");
  });

  test("abandoned in flight may still be delivered", async () => {
    let timeOut = (): void => {}; // Fires when the test calls it, even on a busy machine.
    const after: typeof realPlatform.timers.after = (ms, then) => {
      timeOut = then;
      return realPlatform.timers.after(ms, () => {});
    };
    const it = played({ platform: { ...realPlatform, timers: { ...realPlatform.timers, after } } });
    const abort = new AbortController();
    const sends = [it.send(1, { timeoutMs: 5 }), it.send(2, { signal: abort.signal }), it.send(3)];
    await turn();
    abort.abort();
    timeOut();
    expect(await sends[0]).toBe("send-timeout uncertain");
    expect(await sends[1]).toBe("send-aborted uncertain");
    it.sending.delivered(1, { id: "a", view: 0 });
    expect(await sends[2]).toEqual({ id: "a.2", view: 0 });
  });

  test("abandoned over a long time leave nothing behind", async () => {
    const it = played();
    it.mayHand = false;
    for (let round = 0; round < 50; round++) {
      const abort = new AbortController();
      const sends = Array.from({ length: 200 }, () => it.send("x", { signal: abort.signal }));
      abort.abort();
      await Promise.all(sends);
    }
    expect(it.sending.waiting).toBe(0);
    void it.send("last");
    it.mayHand = true;
    it.sending.wake();
    await turn();
    expect(it.handed).toEqual([{ number: 1, values: ["last"] }]);
  });
});

test("gives as much to the carrier as fits its window, according to its stable multicasts", async () => {
  const it = played({ carried: 2 });
  const handAll = async (upTo: number): Promise<void> => {
    for (let number = it.handed.length + 1; number <= upTo; number++) {
      void it.send(number);
      await turn();
      it.sending.delivered(number, { id: `${number}`, view: 1 });
    }
  };
  await handAll(96);
  void it.send("waits");
  await turn();
  expect([it.handed.length, it.sending.waiting]).toEqual([96, 1]);
  it.sending.stable(2);
  await turn();
  expect([it.handed.length, it.sending.waiting]).toEqual([97, 0]);
  it.sending.delivered(97, { id: "97", view: 1 });
  void it.send("waits");
  await turn();
  expect(it.sending.waiting).toBe(1);
  it.sending.installed(); // A new view begins with an empty window.
  it.sending.wake();
  await turn();
  expect(it.sending.waiting).toBe(0);
});

describe("without a total order", () => {
  const stable = (): Played => played({ settled: "stable", carried: 1 });

  test("a message is settled when it is stable, not when it is delivered here", async () => {
    const it = stable();
    const settled: string[] = [];
    for (const value of ["a", "b"]) {
      void it.send(value).then(() => settled.push(value));
      await turn();
    }
    it.sending.delivered(1, { id: "1", view: 3 });
    it.sending.delivered(2, { id: "2", view: 3 });
    await turn();
    expect(settled).toEqual([]);
    it.sending.stable(1);
    await turn();
    expect(settled).toEqual(["a"]);
    it.sending.stable(2);
    await turn();
    expect(settled).toEqual(["a", "b"]);
  });

  test("a new view settles deliveries of the previous one, and counts from one again", async () => {
    const it = stable();
    const before = it.send("before");
    await turn();
    it.sending.delivered(1, { id: "3.1.1", view: 3 });
    it.sending.installed();
    expect(await before).toEqual({ id: "3.1.1.0", view: 3 });
    const after = it.send("after");
    await turn();
    it.sending.delivered(2, { id: "4.1.1", view: 4 });
    it.sending.stable(1);
    expect(await after).toEqual({ id: "4.1.1.0", view: 4 });
  });

  test("an expelled member does not know the outcome, and sends waiting messages in the next view", async () => {
    const it = stable();
    const first = it.send("first");
    await turn();
    it.mayHand = false;
    const second = it.send("second");
    it.sending.ejected();
    expect(await first).toBe("send-uncertain uncertain");
    it.mayHand = true;
    it.sending.installed();
    await turn();
    expect(it.handed.at(-1)).toEqual({ number: 2, values: ["second"] });
    it.sending.delivered(2, { id: "5.1.1", view: 5 });
    it.sending.stable(1);
    expect(await second).toEqual({ id: "5.1.1.0", view: 5 });
  });
});

describe("at the end", () => {
  test("unsent messages are certainly not delivered", async () => {
    const it = played();
    const sent = it.send(1);
    await turn();
    it.mayHand = false;
    const waiting = it.send(2);
    it.sending.close(new CoordinationError("member-left", "lost", "member 1 has left"));
    expect(await sent).toBe("member-left uncertain");
    expect(await waiting).toBe("member-left never-sent");
    expect(await it.send(3)).toBe("member-left never-sent");
  });

  test.each(["withdraw", "close"] as const)("%s: a message in flight is not reported as unsent", async (way) => {
    const it = played();
    const large = "x".repeat(MAX_PAYLOAD_BYTES - 2);
    const sends = Array.from({ length: 100 }, () => it.send(large));
    await turn();
    const sent = it.handed.length;
    expect(sent).toBeLessThan(sends.length - sent); // More messages wait than are in flight.
    if (way === "withdraw") it.sending.withdraw(OWNER);
    else it.sending.close(new CoordinationError("member-left", "lost", "member 1 has left"));
    for (let number = 1; number <= sent; number++) it.sending.delivered(number, { id: `${number}`, view: 0 });
    const outcomes = await Promise.all(sends);
    const fates = outcomes.map((outcome) => (typeof outcome === "string" ? outcome : "sent"));
    const [fate, unsent] =
      way === "withdraw" ? ["sent", "channel-closed never-sent"] : ["member-left uncertain", "member-left never-sent"];
    expect(fates).toEqual([...Array(sent).fill(fate), ...Array(sends.length - sent).fill(unsent)]);
    expect([it.sending.waiting, it.sending.inFlight]).toEqual([0, 0]);
  });

  test("a message cut short by leaving is rejected with that reason", async () => {
    const it = played();
    const sent = it.send(1);
    await turn();
    it.sending.stop(new CoordinationError("member-left", "lost", "member 1 has left"));
    it.sending.ejected();
    expect(await sent).toBe("member-left uncertain");
  });

  test("closing one use drops its waiting messages only", async () => {
    const it = played();
    it.mayHand = false;
    const other = it.sending.send("other", {}, {});
    const own = it.send("own");
    it.sending.withdraw(OWNER);
    expect(await own).toBe("channel-closed never-sent");
    it.mayHand = true;
    it.sending.wake();
    await turn();
    it.sending.delivered(1, { id: "a", view: 0 });
    expect(await other).toEqual({ id: "a.0", view: 0 });
  });

  test("reports when nothing is in flight any more", async () => {
    const it = played();
    await it.sending.idle();
    void it.send(1);
    await turn();
    let isIdle = false;
    void it.sending.idle().then(() => {
      isIdle = true;
    });
    await turn();
    expect(isIdle).toBe(false);
    it.sending.delivered(1, { id: "a", view: 0 });
    await turn();
    expect(isIdle).toBe(true);
  });
});
