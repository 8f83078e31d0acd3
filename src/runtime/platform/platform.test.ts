/** Checks the contract of `platform.ts` on both the real and the simulated platform. */
import { describe, expect, test } from "vitest";
import { type Ground, grounds } from "../../../test/platform/ground.ts";
import type { Listener, ListenerOptions, Platform, Stream } from "./platform.ts";

const text = (words: string): Buffer => Buffer.from(words);

/** Records a stream's events in order, and whether any of them occurred while one of its methods was running. */
function watched(stream: Stream) {
  const told: string[] = [];
  let [isCalled, isEarly] = [false, false];
  const note = (what: string): void => {
    told.push(what);
    isEarly ||= isCalled;
  };
  let read = "";
  stream.on("data", (chunk) => {
    read += chunk.toString();
    isEarly ||= isCalled;
  });
  stream.on("drain", () => note("drain"));
  stream.on("error", ({ code }) => note(String(code)));
  stream.on("close", () => note("close"));
  return {
    stream,
    told,
    get read() {
      return read;
    },
    get isEarly() {
      return isEarly;
    },
    during(act: () => void): void {
      isCalled = true;
      act();
      isCalled = false;
    },
  };
}
type Watched = ReturnType<typeof watched>;

/** Makes node 1 listen, and collects the accepted streams. */
async function listening({ platforms, addresses, closing }: Ground, options: Partial<ListenerOptions> = {}) {
  const accepted: Watched[] = [];
  const dropped: unknown[] = [];
  const listener: Listener = platforms[1].network.listener({
    tls: null,
    handshakeTimeoutMs: 1_000,
    maxStreams: 10,
    onMade() {},
    onReady: (stream) => void accepted.push(watched(stream)),
    onDropped: (from) => void dropped.push(from),
    onTlsRefused() {},
    onError() {},
    ...options,
  });
  await listener.open(addresses[1]);
  const close = (): Promise<void> => {
    for (const { stream } of accepted) stream.destroy();
    return listener.close();
  };
  closing({ close });
  return { accepted, dropped, listener };
}

function dialled({ platforms, addresses, closing }: Ground) {
  const state = { isReady: false };
  const stream = platforms[0].network.dial(addresses[1], null, () => {
    state.isReady = true;
  });
  const watch = watched(stream);
  closing({ close: () => stream.destroy() });
  return { ...watch, watch, state };
}

async function connected(ground: Ground) {
  const { accepted } = await listening(ground);
  const { stream, watch, state } = dialled(ground);
  expect(state.isReady).toBe(false);
  await ground.until(() => expect([state.isReady, accepted.length]).toEqual([true, 1]));
  return { stream, near: watch, far: accepted[0] as Watched };
}

describe.each(grounds)("the $name platform", ({ on }) => {
  describe("time", () => {
    test(
      "moves forward, and its three clocks agree",
      on(async ({ platforms, sleep }) => {
        const { clock } = platforms[0];
        const [began, wall] = [clock.now(), clock.wall()];
        const stamp = clock.stamp();
        await sleep(30);
        expect(Number.isInteger(wall)).toBe(true);
        expect(stamp - wall).toBeGreaterThanOrEqual(0);
        expect(clock.now() - began).toBeGreaterThan(28);
        expect(clock.wall() - wall).toBeGreaterThan(26);
        expect(clock.stamp() - stamp).toBeGreaterThan(26);
      }),
    );

    test(
      "timers fire once, in order of their due times, not early except for Node's rounding",
      on(async ({ platforms, until }) => {
        const { clock, timers } = platforms[0];
        const began = clock.now();
        const ran: [string, number][] = [];
        for (const [name, ms] of [
          ["c", 30.5],
          ["a", -5],
          ["b", 15],
        ] as const)
          timers.after(ms, () => ran.push([name, clock.now() - began - ms]));
        expect(ran).toEqual([]);
        await until(() => expect(ran).toHaveLength(3));
        expect(ran.map(([name]) => name)).toEqual(["a", "b", "c"]);
        expect(Math.min(...ran.map(([, lateMs]) => lateMs))).toBeGreaterThan(-2);
      }),
    );

    test(
      "an interval repeats until it is cancelled, also from within",
      on(async ({ platforms, until, sleep }) => {
        const { timers } = platforms[0];
        let times = 0;
        const timer = timers.every(3, () => {
          times += 1;
          if (times === 4) timers.cancel(timer);
        });
        await until(() => expect(times).toBe(4));
        await sleep(20);
        expect(times).toBe(4);
      }),
    );

    test(
      "a cancelled timer does not fire; null and expired timers may be cancelled",
      on(async ({ platforms, until, sleep }) => {
        const { timers } = platforms[0];
        const ran: string[] = [];
        const kinds = [
          timers.after(1, () => ran.push("after")),
          timers.every(1, () => ran.push("every")),
          timers.soon(() => ran.push("soon")),
        ];
        for (const timer of kinds) timers.cancel(timer);
        timers.cancel(null);
        const over = timers.soon(() => ran.push("over"));
        await until(() => expect(ran).toEqual(["over"]));
        timers.cancel(over);
        expect(kinds.map((timer) => timer.unref())).toEqual(kinds);
        await sleep(10);
        expect(ran).toEqual(["over"]);
      }),
    );

    test(
      "`soon` runs after promises, and before timers",
      on(async ({ platforms, until }) => {
        const { timers } = platforms[0];
        const ran: string[] = [];
        const later = timers.after(60_000, () => ran.push("later")); // This is never due, even on a busy machine.
        timers.soon(() => ran.push("first"));
        timers.soon(() => ran.push("second"));
        await Promise.resolve().then(() => ran.push("promise"));
        await until(() => expect(ran).toEqual(["promise", "first", "second"]));
        timers.cancel(later);
      }),
    );
  });

  test(
    "random numbers are within bounds, and names are unique",
    on(({ platforms }) => {
      const { random } = platforms[0];
      const draws = Array.from({ length: 200 }, () => [
        random.fraction(),
        random.natural(3),
        random.natural(2 ** 48 - 1),
      ]);
      for (const [fraction = -1, small = -1, large = -1] of draws) {
        expect(fraction >= 0 && fraction < 1).toBe(true);
        expect([0, 1, 2]).toContain(small);
        expect(Number.isInteger(large) && large >= 0 && large < 2 ** 48 - 1).toBe(true);
      }
      expect(new Set(draws.map(([, small]) => small)).size).toBe(3);
      const names = platforms.flatMap((platform) => Array.from({ length: 50 }, () => platform.random.name()));
      expect(new Set(names).size).toBe(100);
      for (const name of names) expect(name).toMatch(/^[\w-]{8,36}$/);
    }),
  );

  describe("a stream", () => {
    test(
      "carries bytes in order in both directions, with their content at the time of the write",
      on(async (ground) => {
        const { stream, near, far } = await connected(ground);
        let sent = "";
        for (let i = 0; i < 200; i++) {
          stream.write(text(`${i},`));
          sent += `${i},`;
          if (i % 50 === 0) await ground.sleep(1);
        }
        far.stream.write(text("and back"));
        await ground.until(() => expect([far.read, near.read]).toEqual([sent, "and back"]));
      }),
    );

    test(
      "emits nothing while one of its methods is running",
      on(async (ground) => {
        const { stream, near, far } = await connected(ground);
        near.during(() => void stream.write(text("hello")));
        far.during(() => void far.stream.end(text("go away")));
        await ground.until(() => expect(near.read).toBe("go away"));
        near.during(() => void stream.destroy());
        await ground.until(() => expect(near.told).toContain("close"));
        expect([near.isEarly, far.isEarly]).toEqual([false, false]);
      }),
    );

    test(
      "to a port without a listener is refused, and never ready",
      on(async (ground) => {
        const { told, state, stream } = dialled(ground);
        expect([told, stream.writable]).toEqual([[], true]);
        await ground.until(() => expect(told).toEqual(["ECONNREFUSED", "close"]));
        expect([state.isReady, stream.writable, stream.destroyed]).toEqual([false, false, true]);
      }),
    );

    test(
      "is identified by the address of its other end",
      on(async (ground) => {
        const { accepted } = await listening(ground);
        for (let i = 0; i < 3; i++) dialled(ground);
        await ground.until(() => expect(accepted).toHaveLength(3));
        const origins = accepted.map(({ stream }) => `${stream.remoteAddress} ${stream.remotePort}`);
        expect(new Set(origins).size).toBe(3);
        expect(accepted.map(({ stream }) => stream.remoteAddress)).toEqual(Array(3).fill(ground.addresses[0].host));
      }),
    );

    test(
      "that ends delivers its last bytes, and both ends close",
      on(async (ground) => {
        const { stream, near, far } = await connected(ground);
        far.stream.end(text("these last"));
        expect(far.stream.writable).toBe(false);
        await ground.until(() => expect([near.told, far.told]).toEqual([["close"], ["close"]]));
        expect([near.read, stream.writable]).toEqual(["these last", false]);
      }),
    );

    test(
      "that one end destroys closes at both, once",
      on(async (ground) => {
        const { stream, near, far } = await connected(ground);
        stream.write(text("perhaps"));
        stream.destroy();
        stream.destroy();
        expect([stream.destroyed, stream.writable]).toEqual([true, false]);
        await ground.until(() => expect(far.told.at(-1)).toBe("close"));
        await ground.until(() => expect(near.told).toEqual(["close"]));
        expect(far.told.filter((what) => what !== "close" && what !== "ECONNRESET")).toEqual([]);
      }),
    );

    test(
      "signals backpressure and when to write again; nothing is lost",
      on(async (ground) => {
        const { stream, near, far } = await connected(ground);
        const block = Buffer.alloc(64 * 1024, "x");
        let written = 0;
        for (let hasRoom = true; hasRoom; written += block.length) hasRoom = stream.write(block);
        expect(stream.writableNeedDrain).toBe(true);
        await ground.until(() => expect(near.told).toEqual(["drain"]));
        expect(stream.writableNeedDrain).toBe(false);
        await ground.until(() => expect(far.read).toHaveLength(written));
      }),
    );
  });

  describe("a listener", () => {
    test(
      "sees each stream before it can be read, without names unless TLS is on",
      on(async (ground) => {
        const seen: unknown[] = [];
        await listening(ground, {
          onMade: () => void seen.push("made"),
          onReady: (_stream, names) => void seen.push(names),
        });
        dialled(ground);
        await ground.until(() => expect(seen).toEqual(["made", null]));
      }),
    );

    test(
      "accepts up to its limit of streams, and drops the others",
      on(async (ground) => {
        const { accepted, dropped } = await listening(ground, { maxStreams: 2 });
        const calls = [dialled(ground), dialled(ground), dialled(ground)];
        await ground.until(() => expect([accepted.length, dropped.length]).toEqual([2, 1]));
        await ground.until(() => expect(calls.filter(({ told }) => told.at(-1) === "close")).toHaveLength(1));
      }),
    );

    test(
      "has its own address, which is free again after closing",
      on(async (ground) => {
        const { listener } = await listening(ground);
        await expect(listening(ground)).rejects.toMatchObject({ code: "EADDRINUSE" });
        await listener.close();
        await listening(ground);
      }),
    );

    test(
      "is closed once all its streams are, and refuses others immediately",
      on(async (ground) => {
        const { accepted, listener } = await listening(ground);
        dialled(ground);
        await ground.until(() => expect(accepted).toHaveLength(1));
        let isClosed = false;
        const closed = listener.close().then(() => {
          isClosed = true;
        });
        const { told } = dialled(ground);
        await ground.until(() => expect(told).toEqual(["ECONNREFUSED", "close"]));
        expect(isClosed).toBe(false);
        accepted[0]?.stream.destroy();
        await closed;
      }),
    );

    test(
      "that was never opened can be closed",
      on(({ platforms }) => {
        const none = (): void => {};
        const quiet = { onMade: none, onReady: none, onDropped: none, onTlsRefused: none, onError: none };
        const options = { tls: null, handshakeTimeoutMs: 1_000, maxStreams: 1, ...quiet };
        return platforms[0].network.listener(options).close();
      }),
    );
  });

  describe("a folder", () => {
    const claimed = async ({ folder, closing }: Ground, { disk }: Platform) => {
      await disk.makeFolder(folder);
      await disk.makeFolder(folder); // The folder may already exist.
      const held = await disk.claim(folder);
      let isReleased = false;
      const release = async (): Promise<void> => {
        if (!isReleased) await held.release();
        isReleased = true;
      };
      closing({ close: release });
      return { ...held, release };
    };

    test(
      "has one writer, and another after that has released it",
      on(async (ground) => {
        const [first, second] = ground.platforms;
        const held = await claimed(ground, first);
        await expect(second.disk.claim(ground.folder)).rejects.toMatchObject({ code: "journal-in-use" });
        await (await held.create("file")).close();
        await held.release();
        const file = await (await claimed(ground, second)).open("file");
        expect(file).not.toBeNull();
        await file?.close();
      }),
    );

    test(
      "creates, replaces, renames and removes files, whether they exist or not",
      on(async (ground) => {
        const folder = await claimed(ground, ground.platforms[0]);
        expect(await folder.open("a")).toBeNull();
        await folder.remove("a");
        for (const [name, words] of [
          ["a", "old"],
          ["a", "new a"],
          ["b", "b"],
        ] as const) {
          const file = await folder.create(name);
          expect(await file.size()).toBe(0);
          await file.write(text(words), 0);
          await file.sync();
          await file.close();
        }
        await folder.rename("a", "b");
        expect(await folder.open("a")).toBeNull();
        const renamed = await folder.open("b");
        expect(String(await renamed?.readAll())).toBe("new a");
        await renamed?.close();
        await folder.remove("b");
        expect(await folder.open("b")).toBeNull();
      }),
    );

    test(
      "has files that can be read and written at any offset, and truncated",
      on(async (ground) => {
        const folder = await claimed(ground, ground.platforms[0]);
        const file = await folder.create("file");
        await file.write(text("hello"), 0);
        await file.write(text("world"), 6);
        await file.write(text("W"), 6);
        expect([await file.size(), String(await file.readAll())]).toEqual([11, "hello\0World"]);
        const into = Buffer.alloc(4, "?");
        expect([file.read(into, 8), String(into)]).toEqual([3, "rld?"]);
        expect(file.read(into, 11)).toBe(0);
        await file.datasync();
        await file.truncate(2);
        await file.write(text("y"), 2);
        expect(String(await file.readAll())).toBe("hey");
        await file.close();
      }),
    );
  });
});
