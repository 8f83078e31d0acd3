/**
 * Members that want one name run in two ways. Messages between them go when the test says so, in the order of sending, or, by
 * lot, in that of each link alone.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { memoryJournal } from "../../../test/journal/memory-journal.ts";
import { untraced } from "../../../test/services/untraced.ts";
import type { NodeId } from "../../core/protocol.ts";
import { majority } from "../../core/quorums.ts";
import { type Random, random } from "../../core/random.ts";
import { newCounts } from "../../runtime/metrics.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { announcement, type Envelope, type Setting } from "./algorithms.ts";
import { Instances } from "./instances.ts";
import { LocalMutex } from "./local-mutex.ts";

const NAMED = { kind: "mutex", name: "report" } as const;
const one: Setting = { ...NAMED, algorithm: "elected-server", options: "{}" };
const other: Setting = { ...NAMED, algorithm: "elected-server", options: '{"leaseMs":10000}' };

beforeAll(() => void vi.useFakeTimers()); // A program that waits for a lock asks again and again.
afterAll(() => void vi.useRealTimers());

type Message = Parameters<Instances["receive"]>[1];

const running: Instances[] = [];

/** So many members, of which those run that have been started. What is sent to one that does not run is lost. */
class Members {
  readonly #running = new Map<NodeId, Instances>();
  readonly #kept = new Map<NodeId, Map<string, unknown[]>>();
  readonly #ids: readonly NodeId[];
  #onTheWay: { from: NodeId; to: NodeId; envelope: Message }[] = [];
  /** Who has refused what was used before, and what it was told. */
  readonly refusals: string[] = [];
  epochs = 0;

  constructor(count: number) {
    for (const instances of running.splice(0)) instances.stop(); // Of the test before: their timers would run on.
    this.#ids = Array.from({ length: count }, (_, index) => index + 1);
  }

  /** With what its journal has. */
  start(...ids: readonly NodeId[]): this {
    for (const id of ids) {
      const instances = this.#made(id);
      running.push(instances);
      this.#running.set(id, instances);
      instances.start();
    }
    return this;
  }

  crash(...ids: readonly NodeId[]): this {
    for (const id of ids) {
      this.#running.get(id)?.look(); // What is in use is remembered by now.
      this.#running.get(id)?.stop();
      this.#running.delete(id);
    }
    this.#onTheWay = this.#onTheWay.filter(({ from, to }) => !ids.includes(from) && !ids.includes(to));
    return this;
  }

  lose(id: NodeId): this {
    this.#kept.delete(id);
    return this;
  }

  use(id: NodeId, setting: Setting): this {
    const local = this.#running.get(id)?.use(setting).local;
    if (local instanceof LocalMutex) local.acquire().catch(() => {}); // Nobody serves: it waits for as long as it runs.
    return this;
  }

  /** As much as it can be used so there. */
  wish(id: NodeId, setting: Setting): this {
    const isFree = this.instance(id) === undefined;
    return isFree ? this.use(id, setting) : this;
  }

  say(from: NodeId, to: NodeId, envelope: Message): this {
    this.#onTheWay.push({ from, to, envelope });
    return this;
  }

  /** All that is on its way arrives, and what is sent because of it. */
  settle(): this {
    for (let round = 0; this.#onTheWay.length > 0; round++) {
      if (round > 100) throw new Error("they go on for ever");
      for (const { from, to, envelope } of this.#onTheWay.splice(0)) this.#running.get(to)?.receive(from, envelope);
    }
    return this;
  }

  /** So many of those that may be the next of their link arrive, by lot; or all, and what is sent because of them. */
  deliver(lot: Random, most = Number.POSITIVE_INFINITY): this {
    for (let delivered = 0; delivered < most && this.#onTheWay.length > 0; delivered++) {
      if (delivered > 1_000) throw new Error("they go on for ever");
      const { from, to } = lot.pick(this.#onTheWay);
      const first = this.#onTheWay.findIndex((other) => other.from === from && other.to === to);
      for (const { envelope } of this.#onTheWay.splice(first, 1)) this.#running.get(to)?.receive(from, envelope);
    }
    return this;
  }

  /** The options that each of those that run has, or none. */
  get options(): Record<NodeId, string | null> {
    const entries = [...this.#running].map(([id, { all }]) => [id, all[0]?.setting.options ?? null]);
    return Object.fromEntries(entries) as Record<NodeId, string | null>;
  }

  standing(id: NodeId) {
    return this.#running.get(id)?.standing(NAMED);
  }

  instance(id: NodeId) {
    return this.#running.get(id)?.all[0];
  }

  #made(self: NodeId): Instances {
    const kept = this.#kept.get(self) ?? new Map<string, unknown[]>();
    this.#kept.set(self, kept);
    const send = (to: NodeId, envelope: Envelope) => {
      this.#onTheWay.push({ from: self, to, envelope: envelope as Message });
      return { id: () => "", lost: null };
    };
    return new Instances({
      platform: realPlatform,
      self,
      peers: this.#ids.filter((id) => id !== self),
      maxWaiters: 10,
      counts: newCounts(),
      timing: "default",
      maxInstances: 10,
      journal: memoryJournal(kept),
      log: { info() {}, warn() {}, error() {}, once() {} },
      news: () => [],
      isOnLog: () => false,
      send,
      insist: send,
      multicast() {},
      trace: untraced,
      publish() {},
      hasRoom: () => true,
      bounds: () => ({ payloadBytes: 60_000, batchBytes: 60_000 }),
      checkService() {},
      give() {},
      onExhausted: () => {
        this.epochs += 1;
      },
      onRefused: (_setting, by) => void this.refusals.push(`${by} at ${self}`),
      onFull() {},
      onStray() {},
      onFatal(error) {
        throw error;
      },
    });
  }
}

const ONE = one.options;
const OTHER = other.options;

describe("what a majority runs alike is established", () => {
  test("who comes second with other options, and did not know, gives way and learns what is there", () => {
    const members = new Members(3).start(1, 2).use(1, one).settle();
    const established = members.instance(1);
    members.start(3).use(3, other).settle();
    expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: ONE });
    expect(members.instance(1)).toBe(established);
    expect(members.epochs).toBe(1); // At the third alone.
    expect(members.refusals).toContain("2 at 3"); // With it there are two that run it otherwise.
    expect(members.refusals).toContain("3 at 1");
    expect(() => members.use(3, other)).toThrow(/as they are in use already/);
  });

  test("of two members, both are the majority", () => {
    const members = new Members(2).start(1, 2).use(1, one).settle();
    members.crash(2).lose(2).start(2).use(2, other).settle();
    expect(members.options).toEqual({ 1: ONE, 2: ONE });
  });

  test("who ran it otherwise is a member of it again once it runs it likewise", () => {
    const members = new Members(3).start(1, 2, 3).use(1, one).settle();
    members.crash(3).lose(3).start(3).use(3, other);
    expect(members.standing(1)?.strangers).not.toContain(3);
    members.settle();
    expect(members.standing(1)?.strangers).not.toContain(3);
    expect(members.standing(2)?.strangers).not.toContain(3);
    expect(members.refusals).toContain("1 at 1");
  });

  test("of five, who has given way knows again that a majority runs it, and a late-comer ends nothing", () => {
    const members = new Members(5).start(1, 2, 3, 4).settle().use(1, one).use(4, other).settle();
    expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: ONE, 4: ONE });
    expect([1, 2, 3, 4].map((id) => members.standing(id)?.isEstablished)).toEqual([true, true, true, true]);
    const before = [1, 2, 3, 4].map((id) => members.instance(id));
    members.start(5).use(5, other).settle();
    expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: ONE, 4: ONE, 5: ONE });
    expect([1, 2, 3, 4].map((id) => members.instance(id))).toEqual(before);
  });

  test("a member that restarts, with its journal or without it, learns it from the others", () => {
    const members = new Members(3).start(1, 2, 3).use(1, one).settle();
    for (const id of [1, 2, 3]) {
      members.crash(id).start(id).settle();
      members.crash(id).lose(id).start(id).settle();
    }
    expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: ONE });
    expect(members.refusals).toEqual([]);
  });

  test("as its journal has it, it is so still after a restart of all, though others are not there to say so", () => {
    const members = new Members(3).start(1, 2).use(1, one).settle();
    members.crash(1, 2).start(1, 3).use(3, other);
    expect(members.standing(1)?.isEstablished).toBe(true);
    members.settle();
    expect(members.options).toEqual({ 1: ONE, 3: ONE });
  });

  test("unless a majority runs it otherwise, and the last of it shows itself by an announcement", () => {
    const members = new Members(3).start(1, 2).use(1, one).settle();
    members.crash(1, 2).start(1).lose(2).say(2, 1, announcement(other)).settle();
    expect(members.options).toEqual({ 1: ONE });
    members.say(3, 1, announcement(other)).settle();
    expect(members.options).toEqual({ 1: null });
    expect(members.epochs).toBe(1);
  });

  test("unless a majority runs it otherwise", () => {
    const members = new Members(3).start(1, 2).use(1, one).settle();
    members.crash(1, 2).lose(2).start(2, 3).use(2, other).settle();
    expect(members.options).toEqual({ 2: OTHER, 3: OTHER });
    members.start(1).settle();
    expect(members.options).toEqual({ 1: OTHER, 2: OTHER, 3: OTHER });
  });
});

test("of four, each half keeps to its own where three have run either at some time", () => {
  const members = new Members(4).start(1, 2).use(1, one);
  for (const to of [1, 2]) members.say(3, to, announcement(one));
  members.settle().start(3, 4).use(3, other).use(4, other);
  for (const to of [3, 4]) members.say(1, to, announcement(other)); // From an earlier run of it.
  members.settle();
  expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: OTHER, 4: OTHER });
});

describe("what no majority is known to run", () => {
  test("is closed where it is refused: two that come at the same moment both lose", () => {
    const members = new Members(3).start(1, 3).use(1, one).use(3, other).settle();
    expect(members.options).toEqual({ 1: null, 3: null });
    members.use(1, one).settle();
    expect(members.options).toEqual({ 1: ONE, 3: ONE });
  });

  test.each([
    { first: 1, second: 3 },
    { first: 3, second: 1 },
  ])("of $first and $second at the same moment, the one that a third has heard first is run", ({ first, second }) => {
    const members = new Members(3).start(1, 2, 3).settle().use(first, one).use(second, other).settle();
    expect(members.options).toEqual({ 1: ONE, 2: ONE, 3: ONE });
  });

  test("stays where the third is heard before the refusal, and is begun anew where it is heard after it", () => {
    const members = new Members(3).start(1, 2, 3).settle().use(1, one);
    const atFirst = members.instance(1);
    members.use(3, other).settle();
    expect(members.instance(1)).toBe(atFirst);
    const late = new Members(3).start(1, 2, 3).settle().use(3, one);
    const atThird = late.instance(3);
    late.use(1, other).settle();
    expect(late.instance(3)).not.toBe(atThird);
  });

  test("is not so after a restart either", () => {
    const members = new Members(3).start(1).use(1, one).settle();
    members.crash(1).start(1);
    expect(members.standing(1)?.isEstablished).toBe(false);
  });
});

test("a refusal of what a member runs no more is nothing to it", () => {
  const members = new Members(3).start(1, 3).use(1, one).settle();
  const instance = members.instance(3);
  members.say(1, 3, { type: "refuse", ...other, why: "late" }).settle();
  expect(members.instance(3)).toBe(instance);
  expect(members.refusals).toEqual([]);
});

/** What somebody does, and how many messages arrive before the next act. */
interface Act {
  readonly who: number;
  readonly does: "one" | "other" | "restart" | "restart without its journal";
  readonly delivered: number;
}

const USES = ["one", "other"] as const;
const RESTARTS = ["restart", "restart without its journal"] as const;

function carriedOut(members: Members, count: number, acts: readonly Act[], lot: Random): void {
  for (const { who, does, delivered } of acts) {
    const id = 1 + (who % count);
    if (does === "one" || does === "other") members.wish(id, does === "one" ? one : other);
    else {
      members.crash(id);
      if (does === "restart without its journal") members.lose(id);
      members.start(id);
    }
    members.deliver(lot, delivered);
  }
  members.deliver(lot);
}

const actsOf = (does: readonly Act["does"][]): fc.Arbitrary<Act[]> =>
  fc.array(fc.record({ who: fc.nat(59), does: fc.constantFrom(...does), delivered: fc.nat(6) }), {
    minLength: 2,
    maxLength: 7,
  });

/** How many members run which of the options that are run. */
const runs = (members: Members): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const options of Object.values(members.options))
    if (options !== null) counts[options] = (counts[options] ?? 0) + 1;
  return counts;
};

describe.each([2, 3, 4, 5])("of %i members, whatever they do and in whatever order messages arrive", (count) => {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const halves = { [ONE]: count / 2, [OTHER]: count / 2 };

  test.each([
    { besides: "no restarts", does: USES },
    { besides: "restarts", does: [...USES, ...RESTARTS] },
  ])("with $besides, all run it alike in the end, or of an even number each half its own way", ({ does }) => {
    fc.assert(
      fc.property(actsOf(does), fc.nat(), (acts, seed) => {
        const lot = random(seed);
        const members = new Members(count).start(...ids).deliver(lot);
        carriedOut(members, count, acts, lot);
        const found = runs(members);
        if (Object.keys(found).length > 1) expect(found).toEqual(halves);
      }),
      { numRuns: 150 },
    );
  });

  test("who comes late with other options never ends what a majority runs", () => {
    fc.assert(
      fc.property(actsOf([...USES, ...RESTARTS]), fc.nat(), fc.nat(59), (acts, seed, who) => {
        const lot = random(seed);
        const members = new Members(count).start(...ids).deliver(lot);
        carriedOut(members, count, acts, lot);
        const [options, most] = Object.entries(runs(members)).sort(([, a], [, b]) => b - a)[0] ?? [ONE, 0];
        fc.pre(most >= majority(count));
        const late = 1 + (who % count);
        const others = ids.filter((id) => id !== late && members.options[id] === options);
        const before = others.map((id) => members.instance(id));
        members
          .crash(late)
          .lose(late)
          .start(late)
          .wish(late, options === ONE ? other : one)
          .deliver(lot);
        expect(others.map((id) => members.instance(id))).toEqual(before);
        expect(members.options[late]).toBe(options);
      }),
      { numRuns: 150 },
    );
  });
});
