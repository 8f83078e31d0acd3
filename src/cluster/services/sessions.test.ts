import { getEventListeners } from "node:events";
import { afterEach, describe, expect, test, vi } from "vitest";
import { PATIENCE } from "../../../test/patience.ts";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import type { AcquireOptions, Grant, Leadership, Member } from "./api.ts";
import { CoordinationError } from "./coordination-error.ts";
import { fromMonotonicNs, toMonotonicNs } from "./session-clock.ts";
import type { SessionWord } from "./session-words.ts";
import { Sessions } from "./sessions.ts";
import { OwnTenure } from "./tenure.ts";

afterEach(() => void vi.useRealTimers());

/** A grant that records when it was released. */
class FakeGrant extends OwnTenure {
  readonly name = "x";
  releasedAt: number | null = null;

  constructor(token: number) {
    super({ platform: realPlatform, token, what: 'the lock "x"', onOverdue() {} });
  }

  release(): Promise<void> {
    this.releasedAt ??= performance.now();
    this.end(new CoordinationError("released", "released", "given back"));
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** Creates a member whose grants the test controls. */
function lending() {
  const asked: { options: AcquireOptions; grant: (grant: FakeGrant) => void; refuse: (error: Error) => void }[] = [];
  const campaigns: { elect: (tenure: OwnTenure) => Promise<unknown>; over: boolean }[] = [];
  let refusals = 0;
  const member = {
    mutex: (name: string) => {
      if (name === "bad") throw new UsageError("bad-name", "expected another name");
      return {
        name,
        acquire: (options: AcquireOptions) =>
          new Promise<Grant>((resolve, reject) => {
            asked.push({ options, grant: resolve, refuse: reject });
            options.signal?.addEventListener("abort", () => reject(new Error("aborted")));
          }),
      };
    },
    election: (name: string) => ({
      name,
      lead: (work: (leadership: Leadership) => Promise<unknown>, { signal }: { signal: AbortSignal }) =>
        new Promise((resolve, reject) => {
          const campaign = {
            over: false,
            elect: (tenure: OwnTenure) => work(Object.assign(tenure, { name })).then(resolve, reject),
          };
          campaigns.push(campaign);
          const end = (): void => {
            campaign.over = true;
            reject(new Error("aborted"));
          };
          signal.addEventListener("abort", end);
          if (signal.aborted) end();
        }),
    }),
  } as unknown as Member;
  const sessions = new Sessions(member, () => {
    refusals += 1;
  });
  return { sessions, asked, campaigns, refusals: () => refusals };
}

/** Opens a session whose messages are read as they arrive. */
function opened({ sessions }: ReturnType<typeof lending>, wish: object = {}, kind: "mutex" | "election" = "mutex") {
  const session = sessions.open(kind, "x", wish);
  const words: SessionWord[] = [];
  const ended = (async () => {
    for await (const word of session.words) words.push(word as SessionWord);
  })();
  const last = (event: SessionWord["event"]) =>
    vi.waitUntil(() => words.find((word) => word.event === event), PATIENCE);
  const idOf = async () => ((await last("waiting")) as { session: string }).session;
  return { session, words, ended, last, idOf, events: () => words.map(({ event }) => event) };
}

describe("a lock held for a program", () => {
  test("is announced with its token and its deadlines, which all processes of the machine can read", async () => {
    const it = lending();
    const { words, last } = opened(it);
    const grant = new FakeGrant(7);
    const deadline = performance.now() + 5_000;
    grant.confirm(deadline);
    it.asked[0]?.grant(grant);
    await last("granted");
    grant.confirm(deadline + 1_000);
    await last("certain");
    expect(words.map(({ event }) => event)).toEqual(["waiting", "granted", "certain"]);
    expect(words[1]).toMatchObject({ token: 7 });
    for (const [at, expected] of [
      [1, deadline],
      [2, deadline + 1_000],
    ] as const) {
      const moment = fromMonotonicNs((words[at] as { monotonicNs: string }).monotonicNs);
      expect(moment).toBeGreaterThan(expected - 1_000);
      expect(moment).toBeLessThanOrEqual(expected);
    }
    await grant.release();
  });

  test("is released at once when the program is done", async () => {
    const it = lending();
    const { last, idOf, ended, events } = opened(it);
    const grant = new FakeGrant(1);
    grant.confirm(performance.now() + 60_000);
    it.asked[0]?.grant(grant);
    await last("granted");
    const id = await idOf();
    await it.sessions.release(id);
    expect(grant.releasedAt).not.toBeNull();
    await ended;
    expect(events()).toEqual(["waiting", "granted", "released"]);
    expect(() => it.sessions.release(id)).toThrow("expected an open session");
  });

  test("is released after the last deadline, and not a fraction of a millisecond earlier, if the program disappears silently", async () => {
    const it = lending();
    const all = Array.from({ length: 40 }, async (_, index) => {
      const { session, last, ended } = opened(it);
      const grant = new FakeGrant(index);
      const deadline = performance.now() + 150 + index / 40;
      grant.confirm(deadline);
      it.asked[index]?.grant(grant);
      await last("granted");
      session.leave();
      grant.confirm(deadline + 60_000); // The program has left, so it never receives this deadline.
      await ended;
      expect(grant.releasedAt).toBeGreaterThanOrEqual(deadline);
    });
    await Promise.all(all);
  });

  test("without a deadline is released as soon as the program disconnects", async () => {
    const it = lending();
    const { session, last, ended } = opened(it);
    const grant = new FakeGrant(1);
    it.asked[0]?.grant(grant);
    expect(await last("granted")).toMatchObject({ untilMs: null, monotonicNs: null });
    session.leave();
    await ended;
    expect(grant.releasedAt).not.toBeNull();
  });

  test("is taken from a program that is silent for too long, and kept by one that sends signs of life", async () => {
    vi.useFakeTimers();
    const it = lending();
    const [silent, alive] = [opened(it, { silenceMs: 200 }), opened(it, { silenceMs: 200 })];
    const grants = [new FakeGrant(1), new FakeGrant(2)];
    for (const [index, grant] of grants.entries()) it.asked[index]?.grant(grant);
    const id = await alive.idOf();
    for (let passedMs = 0; passedMs < 2_000; passedMs += 100) {
      it.sessions.keep(id);
      await vi.advanceTimersByTimeAsync(100);
    }
    await silent.ended;
    expect(grants.map(({ releasedAt }) => releasedAt !== null)).toEqual([true, false]);
    await it.sessions.release(id);
  });

  test("is reported as lost", async () => {
    const it = lending();
    const { last, idOf, ended, events } = opened(it);
    const grant = new FakeGrant(1);
    grant.confirm(performance.now() + 60_000);
    it.asked[0]?.grant(grant);
    await last("granted");
    grant.lose();
    await last("lost");
    expect(events()).toEqual(["waiting", "granted", "lost"]);
    await it.sessions.release(await idOf());
    await ended;
  });

  test("is no longer awaited when the program disconnects", async () => {
    const it = lending();
    const { session, ended, events } = opened(it, { timeoutMs: 9 });
    expect(it.asked[0]?.options.timeoutMs).toBe(9);
    session.leave();
    await ended;
    expect(it.asked[0]?.options.signal?.aborted).toBe(true);
    expect(events()).toEqual(["waiting"]);
  });

  test("is refused with a message", async () => {
    const it = lending();
    const { ended, words } = opened(it);
    it.asked[0]?.refuse(new CoordinationError("acquire-timeout", "never-acquired", "too late"));
    await ended;
    expect(words[1]).toEqual({ event: "refused", code: "acquire-timeout", message: "too late" });
  });

  test("uses no more memory without a reader: only the last deadline counts", async () => {
    const it = lending();
    const session = it.sessions.open("mutex", "x", {});
    const grant = new FakeGrant(1);
    it.asked[0]?.grant(grant);
    await new Promise(setImmediate);
    const from = performance.now() + 60_000;
    for (let more = 0; more < 1_000; more += 1) grant.confirm(from + more);
    grant.lose();
    session.leave();
    const words: SessionWord[] = [];
    for await (const word of session.words) {
      words.push(word as SessionWord);
      if (word === words[3]) break;
    }
    expect(words.map(({ event }) => event)).toEqual(["waiting", "granted", "certain", "lost"]);
    expect(fromMonotonicNs((words[2] as { monotonicNs: string }).monotonicNs)).toBeGreaterThan(from + 900);
  });
});

describe("a campaign for a program", () => {
  test("ends with its leadership, and the member steps down", async () => {
    const it = lending();
    const { last, idOf, ended, events } = opened(it, {}, "election");
    const tenure = new OwnTenure({ platform: realPlatform, token: 4, what: "leadership", onOverdue() {} });
    const worked = it.campaigns[0]?.elect(tenure);
    await last("granted");
    await it.sessions.release(await idOf());
    await worked;
    await ended;
    expect(events()).toEqual(["waiting", "granted", "released"]);
  });

  test("takes turns with others of the same name", async () => {
    const it = lending();
    const [first, second, third] = [1, 2, 3].map(() => opened(it, {}, "election"));
    await vi.waitUntil(() => it.campaigns.length === 1, PATIENCE);
    second?.session.leave();
    await second?.ended;
    first?.session.leave();
    await vi.waitUntil(() => it.campaigns.length === 2, PATIENCE);
    expect(it.campaigns.map(({ over }) => over)).toEqual([true, false]);
    third?.session.leave();
    await third?.ended;
  });
});

test("ended sessions leave no listeners behind", async () => {
  const listening = vi.spyOn(EventTarget.prototype, "addEventListener");
  try {
    const it = lending();
    for (let turn = 0; turn < 20; turn++) {
      const lock = opened(it);
      const grant = new FakeGrant(turn);
      it.asked[turn]?.grant(grant);
      await lock.last("granted");
      const first = opened(it, {}, "election");
      const second = opened(it, {}, "election"); // The second campaign waits for its turn.
      const tenure = new OwnTenure({
        platform: realPlatform,
        token: turn,
        what: "the leadership",
        onOverdue() {},
      });
      await vi.waitUntil(() => it.campaigns.length > turn, PATIENCE);
      void it.campaigns[turn]?.elect(tenure);
      await first.last("granted");
      second.session.leave();
      await second.ended;
      for (const held of [lock, first]) await it.sessions.release(await held.idOf());
      await Promise.all([lock.ended, first.ended]);
    }
    const signals = new Set(listening.mock.contexts.filter((target) => target instanceof AbortSignal));
    const counts = [...signals].map((signal) => getEventListeners(signal, "abort").length);
    expect(counts.length).toBeGreaterThan(0);
    // Each fake has one listener.
    expect(Math.max(...counts)).toBe(1);
    expect(counts.filter((count) => count > 0)).toHaveLength(it.asked.length + it.campaigns.length);
  } finally {
    listening.mockRestore();
  }
});

test("a leaving member notifies all sessions, and waits for holders until they are done", async () => {
  const it = lending();
  const holding = opened(it);
  const waiting = opened(it);
  const grant = new FakeGrant(1);
  grant.confirm(performance.now() + 60_000);
  it.asked[0]?.grant(grant);
  await holding.last("granted");
  let isClosed = false;
  const closing = it.sessions.close().then(() => {
    isClosed = true;
  });
  await holding.last("lost");
  expect({ isClosed, releasedAt: grant.releasedAt }).toEqual({ isClosed: false, releasedAt: null });
  await it.sessions.release(await holding.idOf());
  await closing;
  expect(grant.releasedAt).not.toBeNull();
  const late = new FakeGrant(2);
  it.asked[1]?.grant(late); // The session ended while it was waiting.
  await vi.waitUntil(() => late.releasedAt !== null, PATIENCE);
  expect(waiting.events()).toEqual(["waiting", "refused"]);
  expect(() => it.sessions.open("mutex", "x", {})).toThrow("this member is leaving");
});

describe("rejects", () => {
  test.each<[object | null, string]>([
    [null, "expected the body to be an object"],
    [{ algorithms: "x" }, "algorithms"],
    [{ timeoutMs: -1 }, "expected timeoutMs to be a whole number of milliseconds, got -1"],
    [{ silenceMs: 1 }, "expected silenceMs to be a whole number of 100 or more, got 1"],
  ])("a request such as %j", (wish, why) => {
    expect(() => lending().sessions.open("mutex", "x", wish)).toThrow(why);
  });

  test("a time limit of a campaign, an invalid name, and too many sessions, which are counted", () => {
    const it = lending();
    expect(() => it.sessions.open("election", "x", { timeoutMs: 1 })).toThrow("to be absent for an election");
    expect(() => it.sessions.open("mutex", "bad", {})).toThrow("expected another name");
    for (let open = 0; open < 128; open += 1) it.sessions.open("mutex", "x", {});
    expect(() => it.sessions.open("mutex", "x", {})).toThrow(EnvironmentError);
    expect(it.refusals()).toBe(1);
  });
});

test("times read from the machine's clock are never later than they were", () => {
  const moment = performance.now() + 1_234;
  const back = fromMonotonicNs(toMonotonicNs(moment));
  expect(back).toBeLessThanOrEqual(moment);
  expect(back).toBeGreaterThan(moment - 1_000);
});
