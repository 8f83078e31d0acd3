import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { grantRun } from "../../../../test/protocols/service/grant-runs.ts";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { putOf, rangeOf } from "../keyspace/new-requests.ts";
import { keysOf, valuesOf } from "../keyspace/table.ts";
import type { KeyspaceCommand } from "../keyspace/vocabulary.ts";
import { changeIn } from "./keys.ts";
import { type Operation, prefixRange, STATE_MACHINE_VERSION, type Step } from "./operations.ts";

const put = (key: string, value: string, isLeased = false): Operation => ({
  type: "put",
  map: "m",
  key,
  value,
  isLeased,
});
const acquire = (wait: number, mode: "exclusive" | "shared", capacity = 1, permits = 1): Operation => ({
  type: "acquire",
  name: "l",
  wait,
  mode,
  permits,
  capacity,
  note: "",
});
const release = (token: number): Operation => ({ type: "release", name: "l", token });

function withSessions(count: number, limits = {}, machines = {}) {
  const replica = oneReplica(limits, machines);
  const sessions = Array.from({ length: count }, (_, member) => replica.open(member));
  replica.events();
  /** Returns the changes to maps since the last call. */
  const changes = () =>
    replica.events().flatMap((event) => (event.type === "keysChanged" ? event.events.map(changeIn) : []));
  return { ...replica, sessions, changes };
}

describe("keys", () => {
  it("are put, read and deleted; each change has a revision", () => {
    const { apply, ask, changes } = withSessions(1);
    expect(apply(0, put("a", "1"))).toEqual({ type: "stored", previous: null });
    expect(apply(0, put("a", "2"))).toEqual({
      type: "stored",
      previous: { value: "1", revision: 2, session: null },
    });
    expect(ask({ type: "get", map: "m", key: "a" })).toEqual({
      type: "found",
      entry: { value: "2", revision: 3, session: null },
    });
    expect(apply(0, { type: "delete", map: "m", key: "a" })).toMatchObject({
      type: "stored",
      previous: { value: "2" },
    });
    expect(apply(0, { type: "delete", map: "m", key: "a" })).toEqual({ type: "stored", previous: null });
    expect(changes()).toEqual([
      { revision: 2, map: "m", key: "a", value: "1" },
      { revision: 3, map: "m", key: "a", value: "2" },
      { revision: 4, map: "m", key: "a", value: null },
    ]);
  });

  it("may have any name", () => {
    const { apply, ask } = withSessions(1);
    for (const key of ["__proto__", "constructor", "toString", "", "é\u0000🦊"]) {
      apply(0, put(key, key));
      expect(ask({ type: "get", map: "m", key })).toMatchObject({ entry: { value: key } });
    }
    expect(ask({ type: "get", map: "m", key: "valueOf" })).toEqual({ type: "found", entry: null });
  });

  it("are listed in order, in a range, up to a limit", () => {
    const { apply, ask } = withSessions(1);
    for (const key of ["b2", "a", "b10", "c", "b1"]) apply(0, put(key, "x"));
    const keys = (from: string, to: string | null, limit = 9) => {
      const answer = ask({ type: "range", map: "m", from, to, limit });
      return answer.type === "entries" ? [...answer.entries.map(({ key }) => key), answer.isMore] : answer;
    };
    expect(keys("", null)).toEqual(["a", "b1", "b10", "b2", "c", false]);
    expect(keys("b", null, 2)).toEqual(["b1", "b10", true]);
    const { from, to } = prefixRange("b");
    expect(keys(from, to)).toEqual(["b1", "b10", "b2", false]);
    expect(prefixRange("a\uffff")).toEqual({ from: "a\uffff", to: "a\u{10000}" });
    expect(prefixRange("\uffff")).toEqual({ from: "\uffff", to: "\u{10000}" });
    expect(prefixRange("a\u{10ffff}")).toEqual({ from: "a\u{10ffff}", to: "b" });
    expect(prefixRange("\u{10ffff}")).toEqual({ from: "\u{10ffff}", to: null });
  });

  it("change together or not at all, at one revision", () => {
    const { apply, changes } = withSessions(1);
    apply(0, put("a", "1"));
    changes();
    const move = (value: string): Operation => ({
      type: "transaction",
      compare: [
        { type: "value", map: "m", key: "a", value },
        { type: "revision", map: "n", key: "a", revision: 0 },
      ],
      success: [
        { type: "delete", map: "m", key: "a" },
        { type: "put", map: "n", key: "a", value, isLeased: false },
      ],
      failure: [{ type: "get", map: "m", key: "a" }],
    });
    expect(apply(0, move("2"))).toMatchObject({
      succeeded: false,
      results: [{ type: "found", entry: { value: "1", revision: 2 } }],
    });
    expect(changes()).toEqual([]);
    expect(apply(0, move("1"))).toMatchObject({ succeeded: true, results: [{ type: "stored" }, { type: "stored" }] });
    expect(changes()).toEqual([
      { revision: 3, map: "m", key: "a", value: null },
      { revision: 3, map: "n", key: "a", value: "1" },
    ]);
  });

  it("change at most once in a transaction", () => {
    const { apply, ask } = withSessions(1);
    const twice = [put("a", "1"), put("a", "2")] as Step[];
    const operation: Operation = { type: "transaction", compare: [], success: twice, failure: [] };
    expect(apply(0, operation)).toMatchObject({ code: "bad-operation" });
    expect(ask({ type: "get", map: "m", key: "a" })).toMatchObject({ entry: null });
  });

  it("are deleted with the session that leased them", () => {
    const { apply, end, events, ask } = withSessions(2);
    apply(0, put("a", "1", true));
    apply(1, put("b", "1", true));
    apply(0, put("c", "1"));
    events();
    end(0);
    expect(events()).toMatchObject([
      { type: "ended" },
      { type: "keysChanged", events: [{ type: "delete", kv: { key: "map/m/a" } }] },
    ]);
    expect(ask({ type: "range", map: "m", from: "", to: null, limit: 9 })).toMatchObject({
      entries: [{ key: "b" }, { key: "c" }],
    });
  });

  it("a watch resumes from any revision whose changes are kept, and is refused below", () => {
    const { apply, ask } = withSessions(1, { maxHistoryBytes: 400 });
    for (const value of ["1", "2", "3"]) apply(0, put("a", value)); // These have revisions 2, 3 and 4.
    expect(ask({ type: "changes", map: "m", after: 2 })).toMatchObject({ changes: [{ value: "2" }, { value: "3" }] });
    expect(ask({ type: "changes", map: "m", after: 3 })).toMatchObject({ changes: [{ value: "3" }] });
    expect(ask({ type: "changes", map: "m", after: 1 })).toMatchObject({ type: "refused", code: "compacted" });
  });

  it("a watch of a quiet map loses nothing to busy maps", () => {
    const { apply, ask } = withSessions(1, { maxHistoryBytes: 400 });
    const change = (map: string) => apply(0, { type: "put", map, key: "a", value: "1", isLeased: false });
    change("quiet"); // This has revision 2.
    for (let times = 0; times < 9; times++) change("busy");
    expect(ask({ type: "changes", map: "quiet", after: 2 })).toEqual({ type: "changes", changes: [], isMore: false });
    expect(ask({ type: "changes", map: "never", after: 1 })).toMatchObject({ type: "changes", changes: [] });
    for (const map of ["quiet", "busy"])
      expect(ask({ type: "changes", map, after: 1 })).toMatchObject({ type: "refused", code: "compacted" });
  });

  it("a watch reads many changes in several parts, each with complete revisions", () => {
    const { apply, ask } = withSessions(1, { maxBytes: 10_000_000, maxHistoryBytes: 20_000_000 });
    const value = "x".repeat(700_000);
    const both = [put("a", value), put("b", value)] as Step[];
    for (let times = 0; times < 3; times++) {
      apply(0, { type: "transaction", compare: [], success: both, failure: [] });
      apply(0, { ...put("a", value), map: "other" } as Operation);
    }
    const read = (after: number) => {
      const answer = ask({ type: "changes", map: "m", after });
      return answer.type === "changes" && [answer.changes.map(({ revision }) => revision), answer.isMore];
    };
    expect([read(1), read(2), read(4), read(6), read(7)]).toEqual([
      [[2, 2], true],
      [[4, 4], true],
      [[6, 6], false],
      [[], false],
      [[], false],
    ]);
  });

  it("are refused beyond the limit, and deletions free the space again", () => {
    const { apply, data } = withSessions(1, { maxBytes: 300 });
    expect(data.keyspace.bytes).toBe(64); // The session is a lease.
    expect(apply(0, put("a", "x".repeat(100)))).toMatchObject({ type: "stored" });
    expect(apply(0, put("b", "x".repeat(100)))).toMatchObject({ type: "refused", code: "full" });
    expect(apply(0, { type: "add", name: "c", by: 1 })).toMatchObject({ type: "refused", code: "full" });
    apply(0, { type: "delete", map: "m", key: "a" });
    expect(data.keyspace).toMatchObject({ bytes: 64, keys: { size: 0 } });
    expect(apply(0, { type: "add", name: "c", by: 1 })).toMatchObject({ type: "counted" });
  });

  it("free space when they are replaced or deleted", () => {
    const [large, other] = ["x".repeat(100), "y".repeat(100)];
    const all = (...success: Step[]): Operation => ({ type: "transaction", compare: [], success, failure: [] });
    const changes: readonly (readonly [Operation, string])[] = [
      [put("a", other), "stored"],
      [put("a", "x".repeat(50)), "stored"],
      [all({ type: "delete", map: "m", key: "a" }, put("b", large) as Step), "transaction"],
      [all(put("a", large) as Step, put("b", "") as Step), "refused"],
      [put("a", "x".repeat(140)), "refused"],
    ];
    for (const [operation, wanted] of changes) {
      const { apply, open, data } = oneReplica({ maxBytes: 250 });
      open(0);
      expect(apply(0, put("a", large))).toMatchObject({ type: "stored" });
      const before = JSON.stringify(data.keyspace);
      expect(apply(0, operation).type).toBe(wanted);
      if (wanted === "refused") expect(JSON.stringify(data.keyspace)).toBe(before);
      expect(data.keyspace.bytes).toBeLessThanOrEqual(250);
    }
  });

  it("are shared with clients of etcd", () => {
    const { apply, ask, changes } = withSessions(1);
    const keys = (command: KeyspaceCommand): Operation => ({ type: "keys", caller: "", command });
    apply(0, put("a", "1"));
    const read = ask({ type: "readKeys", question: rangeOf("map/", "map0") });
    expect(read).toMatchObject({ response: { kvs: [{ key: "map/m/a", value: "1", mod: 2, version: 1 }] } });
    changes();
    const response = { type: "put", revision: 3, prev: null };
    expect(apply(0, keys(putOf("map/m/a", "2")))).toEqual({ type: "keys", response });
    apply(0, keys(putOf("map/m/\xff", "not a text")));
    apply(0, keys(putOf("other", "")));
    expect(changes()).toEqual([{ revision: 3, map: "m", key: "a", value: "2" }, null, null]);
    expect(ask({ type: "range", map: "m", from: "", to: null, limit: 1 })).toEqual({
      type: "entries",
      entries: [{ key: "a", value: "2", revision: 3, session: null }],
      isMore: false,
    });
    expect(ask({ type: "changes", map: "m", after: 1 })).toMatchObject({ changes: [{ value: "1" }, { value: "2" }] });
  });

  it("with long responses to clients of etcd are reported instead of retained", () => {
    const { apply, events } = withSessions(1);
    const keys = (command: KeyspaceCommand): Operation => ({ type: "keys", caller: "me", command });
    apply(0, keys(putOf("a", "x".repeat(70_000))));
    events();
    expect(apply(0, keys(putOf("a", "", { prev: true })))).toEqual({ type: "keys", response: null });
    expect(events()).toMatchObject([
      { type: "keysChanged", revision: 3 },
      { type: "keysAnswered", caller: "me", response: { type: "put", prev: { mod: 2 } } },
    ]);
  });
});

describe("grants", () => {
  it("of a mutex are made in FIFO order, with increasing tokens", () => {
    const { apply, events, sessions } = withSessions(3);
    expect(apply(0, acquire(1, "exclusive"))).toEqual({ type: "granted", token: 2 });
    expect(apply(1, acquire(1, "exclusive"))).toEqual({ type: "waiting", ahead: 0 });
    expect(apply(2, acquire(1, "exclusive"))).toEqual({ type: "waiting", ahead: 1 });
    events();
    expect(apply(0, release(2))).toEqual({ type: "done" });
    expect(events()).toEqual([
      { type: "released", name: "l", session: sessions[0], token: 2 },
      { type: "granted", name: "l", session: sessions[1], wait: 1, token: 3, note: "" },
    ]);
  });

  it("are made once per request, even if the request is repeated", () => {
    const { apply, data } = withSessions(2);
    apply(0, acquire(7, "exclusive"));
    expect(apply(0, acquire(7, "exclusive"))).toEqual({ type: "granted", token: 2 });
    apply(1, acquire(7, "exclusive"));
    expect(apply(1, acquire(7, "exclusive"))).toEqual({ type: "waiting", ahead: 0 });
    expect(valuesOf(data.locks)[0]).toMatchObject({ holders: [{ token: 2 }], waiters: [{ wait: 7 }] });
  });

  it("are released by token: a late release affects no other grant", () => {
    const { apply, ask } = withSessions(2);
    apply(0, acquire(1, "exclusive"));
    apply(1, acquire(1, "exclusive"));
    apply(0, release(2));
    expect(apply(0, release(2))).toMatchObject({ code: "not-held" });
    expect(apply(0, release(3))).toMatchObject({ code: "not-held" }); // Token 3 belongs to session 1.
    expect(ask({ type: "holders", name: "l" })).toMatchObject({ holders: [{ member: 1, token: 3 }], waiting: 0 });
  });

  it("of readers and writers: a waiting writer is not overtaken", () => {
    const { apply, ask } = withSessions(4);
    const read = (member: number) => apply(member, acquire(1, "shared", 100));
    expect([read(0), read(1)]).toMatchObject([{ type: "granted" }, { type: "granted" }]);
    expect(apply(2, acquire(1, "exclusive", 100))).toEqual({ type: "waiting", ahead: 0 });
    expect(read(3)).toEqual({ type: "waiting", ahead: 1 });
    apply(0, release(2));
    expect(ask({ type: "holders", name: "l" })).toMatchObject({ holders: [{ member: 1 }], waiting: 2 });
    apply(1, release(3));
    expect(ask({ type: "holders", name: "l" })).toMatchObject({
      holders: [{ member: 2, mode: "exclusive" }],
      waiting: 1,
    });
  });

  it("of a semaphore are limited to its permits, and others wait for their turn", () => {
    const { apply, ask } = withSessions(3);
    apply(0, acquire(1, "shared", 3, 2));
    expect(apply(1, acquire(1, "shared", 3, 2))).toMatchObject({ type: "waiting" });
    // The request would fit, but may not overtake a waiter.
    expect(apply(2, acquire(1, "shared", 3, 1))).toMatchObject({ type: "waiting" });
    expect(apply(2, acquire(2, "shared", 4, 1))).toMatchObject({ code: "in-use" });
    expect(apply(2, acquire(2, "shared", 3, 4))).toMatchObject({ code: "bad-operation" });
    expect(apply(2, acquire(2, "shared", 0, 1))).toMatchObject({ code: "bad-operation" });
    apply(1, { type: "withdraw", name: "l", wait: 1 });
    expect(ask({ type: "holders", name: "l" })).toMatchObject({ holders: [{ member: 0 }, { member: 2 }], waiting: 0 });
  });

  it("end with their session, as does waiting; an unused name leaves nothing behind", () => {
    const { apply, end, events, data } = withSessions(3);
    apply(0, acquire(1, "exclusive"));
    apply(1, acquire(1, "exclusive"));
    apply(2, acquire(1, "exclusive"));
    end(1);
    events();
    end(0);
    expect(events()).toMatchObject([{ type: "ended" }, { type: "released", token: 2 }, { type: "granted", wait: 1 }]);
    apply(2, { type: "withdraw", name: "l", wait: 1 });
    expect(keysOf(data.locks)).toEqual([]);
  });

  it("keep these rules in random operations, some repeated, late, or of an ended session", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        expect(grantRun(seed, 100)).toBeNull();
      }),
      { numRuns: 20 },
    );
  });

  it("are refused when too many wait", () => {
    const { apply } = withSessions(1, { maxWaiting: 2 });
    apply(0, acquire(1, "exclusive"));
    apply(0, acquire(2, "exclusive"));
    expect(apply(0, acquire(3, "exclusive"))).toMatchObject({ code: "too-many" });
    expect(apply(0, acquire(2, "exclusive"))).toMatchObject({ type: "waiting" });
  });
});

describe("queues", () => {
  const enqueue = (value: string): Operation => ({ type: "enqueue", name: "q", value });
  const take = (wait: number): Operation => ({ type: "take", name: "q", wait });

  it("give each item to one session, the oldest to the one that has waited longest", () => {
    const { apply, events, sessions } = withSessions(3);
    apply(1, take(1));
    apply(0, take(1));
    events();
    apply(2, enqueue("a"));
    expect(events()).toEqual([{ type: "item", name: "q", session: sessions[1], wait: 1, token: 3, value: "a" }]);
    apply(2, enqueue("b"));
    apply(2, enqueue("c"));
    expect(events()).toMatchObject([{ session: sessions[0], value: "b" }]);
    expect(apply(1, take(2))).toMatchObject({ type: "item", value: "c" });
    expect(apply(1, take(2))).toMatchObject({ type: "item", value: "c" });
  });

  it("get an item back at the front when its taker gives it back or its session ends, then with a higher token", () => {
    const { apply, end, ask, data } = withSessions(2);
    for (const value of ["a", "b", "c"]) apply(0, enqueue(value)); // These have revisions 2, 3 and 4.
    apply(1, take(1));
    apply(1, take(2));
    expect(apply(0, take(1))).toEqual({ type: "item", token: 7, value: "c" });
    end(1);
    expect(apply(0, take(2))).toEqual({ type: "item", token: 8, value: "a" });
    apply(0, { type: "giveBack", name: "q", token: 8 });
    expect(apply(0, take(3))).toMatchObject({ token: 9, value: "a" });
    expect(apply(0, { type: "finish", name: "q", token: 9 })).toEqual({ type: "done" });
    expect(apply(0, { type: "finish", name: "q", token: 9 })).toMatchObject({ code: "not-held" });
    expect(ask({ type: "backlog", name: "q" })).toEqual({ type: "backlog", items: 1, taken: 1, waiting: 0 });
    apply(0, { type: "finish", name: "q", token: 7 });
    expect(apply(0, take(4))).toMatchObject({ value: "b" });
    apply(0, { type: "stopTaking", name: "q", wait: 4 });
    expect(valuesOf(data.queues)[0]).toMatchObject({ items: [{ value: "b" }], taken: [] });
  });

  it("are limited in size", () => {
    const { apply, data } = withSessions(1, { maxItems: 2 });
    for (const value of ["a", "b"]) apply(0, enqueue(value));
    expect(apply(0, enqueue("c"))).toMatchObject({ code: "too-many" });
    for (const wait of [1, 2]) apply(0, take(wait));
    for (const { token } of [...(valuesOf(data.queues)[0]?.taken ?? [])])
      apply(0, { type: "finish", name: "q", token });
    expect(data).toMatchObject({ bytes: 0, queues: { size: 0 } });
    for (let wait = 1; wait <= 10; wait++) apply(0, take(wait));
    expect(apply(0, take(11))).toMatchObject({ code: "too-many" });
  });
});

describe("sessions", () => {
  const batch = (life: number, first: number, operations: Operation[], acknowledged = 0) =>
    ({ type: "operations", life, round: 1, acknowledged, first, operations }) as const;
  const add: Operation = { type: "add", name: "c", by: 1 };

  it("apply operations once and in order, even if they are proposed repeatedly in different batches", () => {
    const { propose, ask } = withSessions(1);
    propose(0, batch(1, 2, [add, add]));
    propose(0, batch(1, 3, [add, add])); // The second operation again, and the third.
    propose(0, batch(1, 6, [add])); // The fourth operation is missing.
    expect(propose(0, batch(1, 2, [add, add, add]))?.session?.applied).toBe(4);
    expect(ask({ type: "count", name: "c" })).toMatchObject({ value: 3 });
  });

  it("keep replies until they are acknowledged", () => {
    const { propose } = withSessions(1);
    propose(0, batch(1, 2, [add, add, add]));
    expect(propose(0, batch(1, 5, [], 2))?.session?.replies.map(({ result }) => result)).toEqual([
      { type: "counted", value: 2 },
      { type: "counted", value: 3 },
    ]);
    expect(propose(0, batch(1, 5, [], 4))?.session?.replies).toEqual([]);
  });

  it("that have ended stay ended: their operations have no effect, and a new incarnation ends the old session", () => {
    const { propose, open, data, ask, events } = withSessions(1);
    // The session is not open yet.
    expect(propose(0, batch(3, 2, [add]))).toMatchObject({ session: null, isOver: false });
    const opening = { type: "begin", ttlMs: 1, version: STATE_MACHINE_VERSION } as const;
    propose(0, { type: "operations", life: 2, round: 1, acknowledged: 0, first: 1, operations: [opening, add] });
    expect(events()).toMatchObject([
      { type: "ended", life: 1, reason: "replaced" },
      { type: "opened", life: 2 },
      { type: "keysChanged" },
    ]);
    expect(propose(0, batch(1, 2, [add]))).toMatchObject({ session: null, isOver: true });
    expect(ask({ type: "count", name: "c" })).toMatchObject({ value: 1 });
    expect(data.sessions).toHaveLength(1);
    open(4);
    expect(ask({ type: "sessions" })).toMatchObject({ sessions: [{ member: 0 }, { member: 4 }] });
  });

  it("expire only without a later sign of life", () => {
    const { propose, data, sessions } = withSessions(1);
    const [session = 0] = sessions;
    const seen = data.sessions[0]?.seen ?? 0;
    propose(0, batch(1, 2, []));
    expect(propose(1, { type: "expire", session, seen })).toBe(null);
    const now = data.sessions[0]?.seen ?? 0;
    expect(propose(1, { type: "expire", session, seen: now })).toMatchObject({ member: 0, life: 1, isOver: true });
    expect(propose(1, { type: "expire", session, seen: now })).toBe(null);
  });

  it("that hold something are not closed when idle", () => {
    const { propose, apply } = withSessions(1);
    apply(0, acquire(1, "exclusive"));
    const close = (first: number) =>
      propose(0, {
        type: "operations",
        life: 1,
        round: 1,
        acknowledged: 0,
        first,
        operations: [{ type: "close", ifIdle: true }],
      });
    expect(close(3)).toMatchObject({ isOver: false, session: { replies: [{}, { result: { code: "in-use" } }] } });
    apply(0, release(2));
    expect(close(5)).toMatchObject({ isOver: true });
  });
});
