/**
 * Checks that processes following the same stream have the same state, no matter how the stream is truncated and when
 * they start.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { random } from "../core/random.ts";
import { type KeptMessage, NatsLog, type Stream } from "./nats-log.ts";
import { readRecord } from "./nats-record.ts";
import { type LogRequest, LogState } from "./nats-state.ts";
import { StoreError } from "./store.ts";

/** A stream in memory. */
class Kept {
  messages: KeptMessage[] = [];
  last = 0;
  ms = 1_000;
  made = "1";
  isReplicated = false;
  /** The last sequence number as reported by a deposed leader. Null if the current leader answers. */
  lastAsDeposed: number | null = null;
  /** Changes when followers must start over from the beginning. */
  #turn = 0;
  #woken: (() => void)[] = [];

  add(data: Uint8Array): number {
    this.last += 1;
    this.messages.push({ seq: this.last, ms: this.ms, data });
    this.wake();
    return this.last;
  }

  /** Ends all connections. */
  drop(): void {
    this.#turn += 1;
    this.wake();
  }

  /** Removes the last messages, as when a power failure loses unsynced ones. */
  lose(count: number): void {
    this.messages = this.messages.slice(0, Math.max(0, this.messages.length - count));
    this.last -= count;
    this.drop();
  }

  wake(): void {
    const woken = this.#woken;
    this.#woken = [];
    for (const each of woken) each();
  }

  /**
   * The stream as seen by one process.
   * @param maxBytes the maximum size of a message
   */
  stream(maxBytes = 4_000, lateTurns = 0): Stream {
    const kept = this;
    return {
      maxBytes,
      bounds: () =>
        Promise.resolve({
          first: kept.messages[0]?.seq ?? kept.last + 1,
          last: kept.lastAsDeposed ?? kept.last,
          made: kept.made,
          isReplicated: kept.isReplicated,
        }),
      append: (data) => Promise.resolve({ seq: kept.add(data) }),
      async *follow(from) {
        const turn = kept.#turn;
        for (let next = from; ; ) {
          if (turn !== kept.#turn) return;
          const message = kept.messages.find(({ seq }) => seq >= next);
          if (message !== undefined) {
            next = message.seq + 1;
            for (let turn = 0; turn < lateTurns; turn++) await new Promise((resolve) => setImmediate(resolve));
            yield message;
          } else await new Promise<void>((resolve) => kept.#woken.push(resolve));
        }
      },
      cutOff(below) {
        kept.messages = kept.messages.filter(({ seq }) => seq >= below);
        return Promise.resolve();
      },
    };
  }
}

let writers = 0;
/**
 * Starts a log that follows the stream.
 * @param lateTurns the delay of each message, in turns of the event loop
 */
function following(kept: Kept, maxBytes?: number, lateTurns?: number, saveEvery = 25): NatsLog {
  writers += 1;
  const sleep = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const log = new NatsLog({
    stream: kept.stream(maxBytes, lateTurns),
    writer: `w${writers}`,
    sleep,
    changed() {},
    saveEvery,
    saveEveryBytes: 20_000,
  });
  log.start();
  return log;
}

const written = (key: string, value: string, revision?: number): LogRequest => ({
  type: "commit",
  checks: revision === undefined ? [] : [{ key, revision }],
  writes: [{ key, value }],
});

/** Waits until no process is saving any more. */
async function settled(kept: Kept): Promise<void> {
  for (let quiet = 0, last = 0; quiet < 20; quiet = kept.last === last ? quiet + 1 : 0, last = kept.last) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Shortens a state, which would be too long to compare by eye. */
const digest = (text: string): string => createHash("sha256").update(text).digest("hex");

const readAnew = (error: unknown): void => {
  if (!(error instanceof StoreError)) throw error;
};

/** Resolves with the saved state, or with null while it is being reread. */
const savedBy = (log: NatsLog): Promise<string | null> =>
  log.read().then(
    (state) => state.save(),
    () => null,
  );

describe("a followed stream", () => {
  it("is read with every acknowledged record, though a deposed leader knows of fewer", async () => {
    const kept = new Kept();
    kept.isReplicated = true;
    const [writer, reader] = [following(kept), following(kept, 4_000, 50)];
    await reader.read();
    for (let at = 1; at <= 20; at++) {
      await writer.append(written("m/map/x", String(at)));
      kept.lastAsDeposed = 1;
      expect((await reader.read()).get("m/map/x")?.value).toBe(String(at));
    }
    writer.close();
    reader.close();
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])(
    "yields the state of all its records, though it is cut and read again at any time (seed %i)",
    async (seed) => {
      const draw = random(seed);
      const kept = new Kept();
      const all: KeptMessage[] = [];
      const add = kept.add.bind(kept);
      kept.add = (data) => {
        const seq = add(data);
        all.push(kept.messages.at(-1) as KeptMessage);
        return seq;
      };
      const logs = [following(kept, 2_000), following(kept, 2_000)];
      let longest = 0;
      for (let step = 0; step < 300; step++) {
        kept.ms += draw.below(400);
        const log = logs[draw.below(logs.length)] as NatsLog;
        const action = draw.below(20);
        if (action === 0) kept.drop();
        else if (action === 1) logs.push(following(kept, 2_000));
        else if (action === 2) await log.append({ type: "open", ttlMs: 500 }).catch(readAnew);
        else if (action === 3) await log.append({ type: "keep", session: 1 + draw.below(kept.last) }).catch(readAnew);
        else {
          const value = "é🙂".repeat(1 + draw.below(3));
          await log.append(written(`m/${draw.below(6)}`, value)).catch(readAnew);
        }
        longest = Math.max(longest, kept.messages.length);
      }
      await settled(kept);
      const naive = new LogState();
      for (const { seq, ms, data } of all) {
        const record = readRecord(data);
        naive.apply(seq, ms, record?.type === "request" ? record.request : null);
      }
      const late = following(kept, 2_000);
      for (const log of [...logs, late]) expect(digest((await log.read()).save())).toBe(digest(naive.save()));
      expect(kept.messages[0]?.seq).toBeGreaterThan(1); // The stream was cut …
      expect(longest).toBeLessThan(300); // … and was never long.
      for (const log of [...logs, late]) log.close();
    },
  );

  it("is cut before a few long records take much space", async () => {
    const kept = new Kept();
    const logs = [1, 2].map(() => following(kept, 4_000, 0, 1_000));
    let most = 0;
    for (let at = 0; at < 100; at++) {
      await logs[at % 2]?.append(written("g/1", String(at).padEnd(1_000, "-")));
      most = Math.max(
        most,
        kept.messages.reduce((sum, { data }) => sum + data.length, 0),
      );
    }
    await settled(kept);
    expect(kept.messages[0]?.seq).toBeGreaterThan(50);
    expect(most).toBeLessThan(40_000);
    const late = following(kept);
    expect((await late.read()).save()).toBe((await (logs[0] as NatsLog).read()).save());
    for (const log of [...logs, late]) log.close();
  });

  it("that lost records is read again: no process continues from records that others lack", async () => {
    const kept = new Kept();
    const [a, b] = [following(kept), following(kept)];
    await a.append(written("m/1", "kept"));
    await a.append(written("m/1", "lost"));
    await b.read();
    kept.lose(1);
    kept.ms += 10;
    await a.append(written("m/2", "other")).catch(() => {});
    await a.append(written("m/3", "more")).catch(() => {});
    const late = following(kept);
    const expected = (await late.read()).save();
    for (const log of [a, b]) await expect.poll(() => savedBy(log)).toBe(expected);
    expect((await late.read()).get("m/1")?.value).toBe("kept");
    for (const log of [a, b, late]) log.close();
  });

  it("that was created again begins empty", async () => {
    const kept = new Kept();
    const log = following(kept);
    await log.append(written("m/1", "before"));
    kept.lose(1);
    kept.made = "2";
    await expect.poll(() => savedBy(log)).toBe(new LogState().save());
    log.close();
  });

  it("rejects a change that is longer than a message", async () => {
    const kept = new Kept();
    const log = following(kept, 1_000);
    await expect(log.append(written("m/1", "x".repeat(1_000)))).rejects.toMatchObject({ code: "too-large" });
    expect(kept.last).toBe(0);
    log.close();
  });

  it("has no answer for a lost request, and reports it as uncertain", async () => {
    const kept = new Kept();
    const log = following(kept);
    await log.read();
    const stream = kept.stream();
    kept.made = "2"; // The next check will see this.
    const waiting = new NatsLog({
      stream: { ...stream, follow: () => (async function* (): AsyncGenerator<KeptMessage> {})() },
      writer: "w",
      sleep: () => new Promise((resolve) => setImmediate(resolve)),
      changed() {},
    });
    waiting.start();
    const answer = waiting.append(written("m/1", "x"));
    await new Promise((resolve) => setImmediate(resolve));
    waiting.close();
    await expect(answer).rejects.toMatchObject({ code: "engine-unavailable", isUncertain: true });
    log.close();
  });
});

describe("the state of a stream", () => {
  it("writes only if all checks hold, and retains changes of maps", () => {
    const state = new LogState();
    expect(state.apply(1, 0, written("m/a", "1", 0))).toEqual({ type: "committed", revision: 1 });
    expect(state.apply(2, 0, written("m/a", "2", 0))).toEqual({ type: "other" });
    expect(state.apply(3, 0, written("m/a", "2", 1))).toEqual({ type: "committed", revision: 3 });
    expect(state.apply(4, 0, written("g/lock", "x"))).toEqual({ type: "committed", revision: 4 });
    expect(state.changes("m/", 0)).toEqual({
      revision: 4,
      changes: [
        { key: "m/a", value: "1", revision: 1 },
        { key: "m/a", value: "2", revision: 3 },
      ],
    });
  });

  it("ends sessions by the time of its records, which never runs backwards", () => {
    const state = new LogState();
    const session = 1_000_001; // Composed of the record's time and its number.
    const sessions = [session];
    expect(state.apply(1, 1_000, { type: "open", ttlMs: 100 })).toEqual({ type: "living", sessions });
    expect(state.apply(2, 1_099, { type: "keep", session })).toEqual({ type: "living", sessions });
    expect(state.apply(3, 900, { type: "living", sessions })).toEqual({ type: "living", sessions });
    expect(state.apply(4, 1_199, { type: "keep", session })).toEqual({ type: "living", sessions: [] });
    expect(state.apply(5, 900, { type: "living", sessions })).toEqual({ type: "living", sessions: [] });
  });

  it("retains only the last changes, and reports the oldest retained revision", () => {
    const state = new LogState();
    for (let at = 1; at <= 20_002; at++) state.apply(at, 0, written("m/a", String(at)));
    expect(state.changes("m/", 1)).toBeNull();
    expect(state.changes("m/", 15_000)?.changes).toHaveLength(5_002);
    const long = "x".repeat(4 * 1024 * 1024);
    for (let at = 20_003; at <= 20_008; at++) state.apply(at, 0, written("m/a", long));
    expect(state.changes("m/", 20_002)).toBeNull();
    expect(LogState.restore(state.save()).changes("m/", 20_007)).toEqual(state.changes("m/", 20_007));
  });

  it("is full at its limit, and accepts changes that make it smaller", () => {
    const state = new LogState();
    const long = "x".repeat(8 * 1024 * 1024 - 3);
    for (let at = 1; at <= 4; at++) {
      expect(state.apply(at, 0, written(`g/${at}`, long))).toMatchObject({ type: "committed" });
    }
    expect(state.apply(5, 0, written("g/5", "x"))).toEqual({ type: "full" });
    const gone = { type: "commit", checks: [], writes: [{ key: "g/1", value: null }] } as const;
    expect(state.apply(6, 0, gone)).toMatchObject({ type: "committed" });
    expect(state.apply(7, 0, written("g/5", "x"))).toMatchObject({ type: "committed" });
  });

  it("accepts a shorter value, and the release of a lock, when it is full", () => {
    const state = new LogState();
    for (let at = 1; at <= 4; at++) state.apply(at, 0, written(`m/${at}`, "x".repeat(8 * 1024 * 1024 - 3 - at)));
    const [lock, longer] = ["1234567890", "12345678901"];
    expect(state.apply(5, 0, written("g/l", "1234567"))).toMatchObject({ type: "committed" }); // The state is full now.
    expect(state.apply(6, 0, written("g/l", lock))).toEqual({ type: "full" });
    expect(state.apply(7, 0, written("g/l", "123456"))).toMatchObject({ type: "committed" });
    expect(state.apply(8, 0, written("g/l", "1234567"))).toMatchObject({ type: "committed" });
    const release = { ...written("g/l", longer), isRelease: true } as const;
    expect(state.apply(9, 0, release)).toMatchObject({ type: "committed" }); // A release may grow the value.
    expect(state.apply(10, 0, written("m/1", "short"))).toMatchObject({ type: "committed" });
  });

  it("orders keys by code points", () => {
    const state = new LogState();
    const keys = ["m/a", "m/ab", "m/\u{ffff}", "m/\u{1f642}", "m/\u{20000}"];
    for (const [at, key] of [...keys].reverse().entries()) state.apply(at + 1, 0, written(key, ""));
    const { entries, isMore } = state.range({ from: "m/", to: "m0", limit: 4 });
    expect(entries.map(({ key }) => key)).toEqual(keys.slice(0, 4));
    expect(isMore).toBe(true);
  });

  it.each(["", "{", "null", '{"form":2,"type":"request"}', '{"form":1,"type":"part","at":-1,"index":0,"count":1}\n'])(
    "is not changed by a malformed record: %j",
    (text) => {
      expect(readRecord(new TextEncoder().encode(text))).toBeNull();
    },
  );
});
