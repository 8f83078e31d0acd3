/**
 * The guarantees of `join()` for elections, locks and maps over any engine. The same tests run over the replicated log,
 * the simulated engine and each real engine. `exceptions.ts` lists what an engine cannot do, with the reason.
 */
import { expect } from "vitest";
import type { EngineMember } from "../../src/index.ts";

/** The interface that members of clusters and of engines share. */
export type Shared = Omit<
  EngineMember,
  "engine" | "hasSession" | "leave" | "id" | "mutex" | "election" | typeof Symbol.asyncDispose
> & {
  mutex(name: string): ReturnType<EngineMember["mutex"]>;
  election(name: string, options?: { readonly metadata?: unknown }): ReturnType<EngineMember["election"]>;
  leave(): Promise<void>;
};

export interface Stage {
  /** Another process of the same cluster, or of the same engine. */
  join(): Promise<Shared>;
  /** Writes to the engine directly, as its operator can: over the key of a map or a lock as the engine stores it. */
  spoil(key: string, value: string): Promise<void>;
}

export interface Conformance {
  readonly name: string;
  check(stage: Stage): Promise<void>;
}

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no error",
    (error: unknown) => (error as { code?: unknown }).code,
  );

export const conformance: readonly Conformance[] = [
  {
    name: "a lock has one holder and goes to waiters in FIFO order, with increasing tokens",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const order: number[] = [];
      const tokens: number[] = [];
      const first = await a.mutex("lock").acquire();
      const waiting: Promise<void>[] = [];
      for (const [at, member] of [b, a, b].entries()) {
        waiting.push(
          member.mutex("lock").use((grant) => {
            order.push(at);
            tokens.push(grant.token);
          }),
        );
        // A process sends its requests in order, so the one before has long been in the queue when this one times out.
        await expect(codeOf(member.mutex("lock").acquire({ timeoutMs: 3_000 }))).resolves.toBe("acquire-timeout");
      }
      expect(order).toEqual([]);
      await first.release();
      await Promise.all(waiting);
      expect(order).toEqual([0, 1, 2]);
      expect([first.token, ...tokens]).toEqual([...new Set([first.token, ...tokens])].sort((x, y) => x - y));
    },
  },
  {
    name: "grants of a process that left go to the next waiter at once",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const held = await a.mutex("left").acquire();
      const next = b.mutex("left").acquire();
      await a.leave();
      expect(held.signal.aborted).toBe(true);
      expect((await next).token).toBeGreaterThan(held.token);
    },
  },
  {
    name: "a semaphore has at most as many holders as permits, and rejects a different capacity",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const one = await a.semaphore("places", { permits: 2 }).acquire();
      const two = await b.semaphore("places", { permits: 2 }).acquire();
      expect(await codeOf(b.semaphore("places", { permits: 2 }).acquire({ timeoutMs: 300 }))).toBe("acquire-timeout");
      expect(await codeOf(b.semaphore("places", { permits: 3 }).acquire())).toBe("other-setting");
      await one.release();
      const three = await b.semaphore("places", { permits: 2 }).acquire();
      expect(two.isHeld && three.isHeld).toBe(true);
    },
  },
  {
    name: "readers share a lock, and do not overtake a waiting writer",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const [x, y] = [await a.readWriteLock("page").read(), await b.readWriteLock("page").read()];
      const writer = a.readWriteLock("page").write();
      // Requests of one process for one name are sent in order.
      expect(await codeOf(a.readWriteLock("page").read({ timeoutMs: 500 }))).toBe("acquire-timeout");
      await x.release();
      await y.release();
      expect((await writer).isHeld).toBe(true);
    },
  },
  {
    name: "an election has one leader at a time; others see its id and metadata, and succeed it",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const seen: unknown[] = [];
      const tokens: number[] = [];
      let isLeading = false;
      const lead = (member: Shared, metadata: string): Promise<void> =>
        member.election("chief", { metadata }).lead(async ({ token }) => {
          expect(isLeading).toBe(false);
          isLeading = true;
          tokens.push(token);
          for await (const change of b.election("chief").watch()) {
            if (change.leader === null) continue;
            seen.push(change.metadata);
            break;
          }
          isLeading = false;
        });
      const first = lead(a, "from a");
      await first;
      await lead(b, "from b");
      expect(seen).toEqual(["from a", "from b"]);
      expect(tokens[1]).toBeGreaterThan(tokens[0] as number);
    },
  },
  {
    name: "all processes read the same entries of a map, in key order",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const [mine, theirs] = [a.map<unknown>("things / ü"), b.map<unknown>("things / ü")];
      const first = await mine.put("b/1", { list: [1, "zwei", null] });
      expect(await theirs.entry("b/1")).toEqual({ key: "b/1", value: { list: [1, "zwei", null] }, revision: first });
      expect(await theirs.put("a", "ä\n \0 €")).toBeGreaterThan(first);
      await theirs.put("b/2", new Uint8Array([0, 255]));
      expect((await mine.range()).entries.map(({ key }) => key)).toEqual(["a", "b/1", "b/2"]);
      expect((await mine.range({ prefix: "b/", limit: 1 })).more).toBe(true);
      expect(await mine.get("b/2")).toEqual(new Uint8Array([0, 255]));
      expect(await mine.get("a")).toBe("ä\n \0 €");
      expect(await mine.delete("a")).toBe(true);
      expect([await theirs.get("a"), await theirs.delete("a")]).toEqual([undefined, false]);
      expect((await a.map("things ").range()).entries).toEqual([]);
    },
  },
  {
    name: "one of several concurrent compare-and-set calls succeeds, and no update is lost",
    async check({ join }) {
      const members = [await join(), await join(), await join()];
      const map = (member: Shared) => member.map<number>("counts");
      const tries = await Promise.all(members.map((member) => map(member).compareAndSet("new", 0, 1)));
      expect(tries.filter((revision) => revision !== null)).toHaveLength(1);
      const adds = members.flatMap((member) =>
        Array.from({ length: 4 }, () => map(member).update("sum", (before = 0) => before + 1)),
      );
      await Promise.all(adds);
      expect(await map(members[0] as Shared).get("sum")).toBe(12);
      await Promise.all(members.map((member) => member.counter("hits").add(2)));
      expect(await (members[0] as Shared).counter("hits").get()).toBe(6);
    },
  },
  {
    name: "a watch reports every change after a revision, once and in order",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const map = a.map<number>("watched");
      const from = await map.put("x", 0);
      for (let at = 1; at <= 5; at++) await map.put("x", at);
      const seen: (number | null)[] = [];
      const reading = (async () => {
        for await (const change of b.map<number>("watched").watch({ after: from })) {
          seen.push(change.type === "put" ? change.value : null);
          if (change.type === "delete") return;
        }
      })();
      for (let at = 6; at <= 10; at++) await map.put("x", at);
      await map.delete("x");
      await reading;
      expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null]);
    },
  },
  {
    name: "a transaction over two keys is atomic, and is retried after a conflict",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const accounts = a.map<number>("accounts");
      await accounts.put("x", 100);
      await accounts.put("y", 0);
      const move = (member: Shared): Promise<void> =>
        member.transaction(async (transaction) => {
          const map = member.map<number>("accounts");
          const [x, y] = [(await transaction.get(map, "x")) ?? 0, (await transaction.get(map, "y")) ?? 0];
          transaction.put(map, "x", x - 1);
          transaction.put(map, "y", y + 1);
        });
      await Promise.all([a, b, a, b].map(move));
      expect([await accounts.get("x"), await accounts.get("y")]).toEqual([96, 4]);
    },
  },
  {
    name: "every call rejects a value with an undefined field and names its path",
    async check({ join }) {
      const member = await join();
      const map = member.map<unknown>("values");
      const value = { list: [{ a: undefined }] };
      const refusals = [
        () => map.put("x", value),
        () => map.compareAndSet("x", 0, value),
        () => map.update("x", () => value),
        () => member.transaction((t) => t.put(map, "x", value)),
      ];
      for (const call of refusals)
        await expect(call()).rejects.toMatchObject({
          code: "bad-value",
          message: expect.stringMatching(
            /^(the update of "x" in the map "values": )?expected the value of "x"\.list\[0\]\.a to be JSON data, got undefined$/,
          ) as unknown,
        });
      expect(await map.get("x")).toBeUndefined();
      expect(() => member.election("values", { metadata: value })).toThrow(
        "expected metadata of election().list[0].a to be JSON data, got undefined",
      );
    },
  },
  {
    name: "a leased key is deleted when its process ends, and watches report it",
    async check({ join }) {
      const [a, b] = [await join(), await join()];
      const { revision } = await b.map("present").range();
      const seen = b.map<string>("present").watch({ after: revision });
      await a.map<string>("present").put("a", "here", { leased: true });
      expect((await seen.next()).value).toMatchObject({ type: "put", key: "a" });
      await a.leave();
      expect((await seen.next()).value).toMatchObject({ type: "delete", key: "a" });
      expect(await b.map("present").get("a")).toBeUndefined();
    },
  },
  {
    name: "a value from another program does not end a process: only reads of it throw",
    async check({ join, spoil }) {
      const [a, b, c] = [await join(), await join(), await join()];
      const map = b.map<number>("spoilt");
      const before = await map.put("x", 0);
      await a.map("spoilt").put("leased", 1, { leased: true });
      const held = await b.mutex("spoilt").acquire();
      // If the engine itself reports changes, an unreadable value is one: the watch ends with an error.
      const early = c.map<number>("spoilt").watch({ after: before });
      expect((await early.next()).value).toMatchObject({ type: "put", key: "leased" });
      const reading = async (): Promise<void> => {
        for await (const { key } of early) if (key === "y") return;
      };
      const seen = codeOf(reading());
      await spoil("m/spoilt/leased", "junk");
      await spoil("g/mutex%2Fspoilt", "junk");
      expect(await codeOf(b.map("spoilt").get("leased"))).toBe("bad-operation");
      expect(await codeOf(c.mutex("spoilt").acquire())).toBe("bad-operation");
      await held.release();
      await a.leave(); // From now on each watching process checks leased keys.
      const after = await map.put("x", 1);
      const watch = c.map<number>("spoilt").watch({ after });
      const change = watch.next();
      const sweeping = b.map<number>("spoilt").watch({ key: "y" });
      const swept = sweeping.next();
      await map.put("y", 1);
      expect((await change).value).toMatchObject({ type: "put", key: "y", value: 1 });
      expect((await swept).value).toMatchObject({ type: "put", key: "y", value: 1 });
      expect(["no error", "bad-operation"]).toContain(await seen);
    },
  },
];
