import { describe, expect, it } from "vitest";
import { codeOf, HISTORY, keyspace, ROOM } from "../../../../test/protocols/service/one-keyspace.ts";
import { applyCommand } from "./commands.ts";
import { deleteOf, putOf, rangeOf, txnOf } from "./new-requests.ts";
import { bound, emptyKeyspace, enterLease, leaseOf, putKey } from "./store.ts";
import { lookUp } from "./table.ts";
import type { Compare, KeyspaceQuestion, KeyspaceResponse } from "./vocabulary.ts";

/** Returns a question for events, which covers all keys unless an interval is given. */
const eventsOf = (from: number, maxBytes = 1_000, key = "\0", end = "\0"): KeyspaceQuestion => ({
  type: "events",
  from,
  maxBytes,
  key,
  end,
});

describe("a keyspace", () => {
  it("starts at revision 1, and each change takes the next one", () => {
    const { does, finds } = keyspace();
    expect(finds(rangeOf("a"))).toEqual({ type: "range", revision: 1, kvs: [], more: false, count: 0 });
    expect(does(putOf("a", "1"))).toEqual({ type: "put", revision: 2, prev: null });
    expect(does(putOf("a", "2", { prev: true }))).toEqual({
      type: "put",
      revision: 3,
      prev: { key: "a", create: 2, mod: 2, version: 1, value: "1", lease: "0" },
    });
    expect(does(deleteOf("b"))).toEqual({ type: "delete", revision: 3, deleted: 0, prev: [] });
    expect(does(deleteOf("a"))).toMatchObject({ revision: 4, deleted: 1 });
    expect(does(putOf("a", "3"))).toMatchObject({ revision: 5 });
    expect(finds(rangeOf("a"))).toMatchObject({ kvs: [{ create: 5, mod: 5, version: 1 }] });
  });

  it("finds one key, the keys before an end, or all keys from one on", () => {
    const { does, values } = keyspace();
    for (const key of ["a", "b", "ba", "c"]) does(putOf(key, "1"));
    expect(values(rangeOf("b"))).toEqual(["b=1"]);
    expect(values(rangeOf("b", "c"))).toEqual(["b=1", "ba=1"]);
    expect(values(rangeOf("b", "\0"))).toEqual(["b=1", "ba=1", "c=1"]);
    expect(values(rangeOf("\0", "\0"))).toHaveLength(4);
    expect(values(rangeOf("c", "b"))).toEqual([]);
  });

  it("limits and sorts results, and counts all of them", () => {
    const { does, finds, values } = keyspace();
    for (const key of ["a", "b", "c"]) does(putOf(key, key === "b" ? "0" : "9"));
    does(putOf("a", "5"));
    expect(finds(rangeOf("a", "z", { limit: 2 }))).toMatchObject({ count: 3, more: true, kvs: [{}, {}] });
    expect(finds(rangeOf("a", "z", { limit: 3 }))).toMatchObject({ count: 3, more: false });
    expect(values(rangeOf("a", "z", { order: "descend" }))).toEqual(["c=9", "b=0", "a=5"]);
    expect(values(rangeOf("a", "z", { target: "mod" }))).toEqual(["b=0", "c=9", "a=5"]);
    expect(values(rangeOf("a", "z", { target: "value", order: "descend", limit: 1 }))).toEqual(["c=9"]);
    expect(values(rangeOf("a", "z", { target: "version", order: "descend", limit: 1 }))).toEqual(["a=5"]);
    expect(values(rangeOf("a", "z", { keysOnly: true, limit: 1 }))).toEqual(["a="]);
    expect(finds(rangeOf("a", "z", { countOnly: true }))).toMatchObject({ kvs: [], count: 3, more: false });
    expect(values(rangeOf("a", "z", { minMod: 4 }))).toEqual(["a=5", "c=9"]);
    expect(values(rangeOf("a", "z", { maxCreate: 3 }))).toEqual(["a=5", "b=0"]);
  });

  it("can be read at each revision until that is compacted", () => {
    const { does, values } = keyspace();
    does(putOf("a", "1"));
    does(putOf("a", "2"));
    does(deleteOf("a"));
    does(putOf("b", "3"));
    const at = (revision: number) => values(rangeOf("a", "z", { revision }));
    expect([1, 2, 3, 4, 5].map(at)).toEqual([[], ["a=1"], ["a=2"], [], ["b=3"]]);
    expect(at(6)).toEqual(["futureRevision"]);
    expect(codeOf(does({ type: "compact", revision: 6 }))).toBe("futureRevision");
    expect(does({ type: "compact", revision: 3 })).toEqual({ type: "done", revision: 5 });
    expect(codeOf(does({ type: "compact", revision: 3 }))).toBe("compacted");
    expect([2, 3, 4, 5].map(at)).toEqual([["compacted"], ["a=2"], [], ["b=3"]]);
    does({ type: "compact", revision: 5 });
    expect(values(rangeOf("a", "z"))).toEqual(["b=3"]);
  });

  it("counts current values, and frees the history when it is compacted", () => {
    const { space, does } = keyspace();
    does(putOf("a", "1"));
    const { bytes, historyBytes } = space;
    for (let times = 0; times < 9; times++) does(putOf("a", "1"));
    expect(space.bytes).toBe(bytes);
    expect(space.historyBytes).toBeGreaterThan(10 * historyBytes);
    does({ type: "compact", revision: space.revision });
    expect(space).toMatchObject({ bytes, historyBytes });
    does(deleteOf("a"));
    does(putOf("b", "1"));
    does({ type: "compact", revision: space.revision });
    expect(space).toMatchObject({ bytes, historyBytes, keys: { size: 1, blocks: [{ keys: ["b"] }] } });
  });

  it("a watch from the compacted revision receives a deletion at that revision", () => {
    const { does, finds } = keyspace();
    does(putOf("a", "1"));
    does(deleteOf("a"));
    does({ type: "compact", revision: 3 });
    const events = [{ type: "delete", kv: { key: "a", mod: 3 } }];
    expect(finds(eventsOf(3))).toMatchObject({ events });
    expect(finds(rangeOf("a"))).toMatchObject({ kvs: [] });
    does(putOf("b", "1"));
    does({ type: "compact", revision: 4 });
    expect(finds(eventsOf(4))).toMatchObject({ events: [{ kv: { key: "b" } }] });
  });

  it("drops the oldest changes when the history takes too many bytes", () => {
    const { space, does, finds, values } = keyspace();
    for (let times = 0; times < 10_001; times++) {
      does(putOf("a", "1"));
      expect(space.historyBytes).toBeLessThanOrEqual(HISTORY);
    }
    const { revision, trimmed, history } = space;
    expect(space).toMatchObject({ revision: 10_002, compacted: 0 });
    expect(history).toHaveLength(revision - trimmed + 1);
    expect(space.historyBytes).toBeGreaterThan(0.9 * HISTORY);
    expect(finds(eventsOf(trimmed - 1))).toMatchObject({ type: "refused", code: "compacted", compacted: trimmed });
    expect(codeOf(finds(eventsOf(trimmed)))).toBe("events");
    expect(values(rangeOf("a", "", { revision: trimmed - 2 }))).toEqual(["compacted"]);
    expect(values(rangeOf("a", "", { revision: trimmed - 1 }))).toEqual(["a=1"]);
    // No client has compacted the trimmed revisions yet.
    expect(codeOf(does({ type: "compact", revision: trimmed - 1_000 }))).toBe("done");
    expect(space).toMatchObject({ compacted: trimmed - 1_000, trimmed });
    does({ type: "compact", revision: trimmed + 1 });
    expect(space.trimmed).toBe(0);
  });

  it("keeps the last revision's changes, no matter how large they are", () => {
    const space = emptyKeyspace();
    for (const value of ["1", "2"]) {
      applyCommand(space, txnOf([], [putOf("a", value), putOf("b", value)], []), ROOM);
      bound(space, 1);
    }
    expect(space.history.map(({ kv }) => `${kv.mod} ${kv.key}`)).toEqual(["3 a", "3 b"]);
  });

  it("reads changes of a range in several parts", () => {
    const { does, finds } = keyspace();
    does(putOf("a", "1"));
    does(putOf("b", "1".repeat(1_000)));
    does(txnOf([], [putOf("a", "2"), putOf("a2", "2"), putOf("b", "")], []));
    does(putOf("a", "3"));
    const read = (from: number) => {
      const { events, next } = finds(eventsOf(from, 0, "a", "b")) as KeyspaceResponse & { type: "events" };
      return [events.map(({ kv }) => kv.mod), next];
    };
    expect([read(2), read(4), read(5), read(6)]).toEqual([
      [[2], 4],
      [[4, 4], 5],
      [[5], 6],
      [[], 6],
    ]);
  });

  it("quiet ranges can be watched and read from revisions before its history, until a client compacts it", () => {
    const { does, finds, values } = keyspace();
    does(putOf("quiet/a", "1"));
    for (let times = 0; times < 8_000; times++) does(putOf(times % 2 === 0 ? "busy/a" : "zebra", "1"));
    const { revision } = does(deleteOf("nothing"));
    const watched = (from: number) => codeOf(finds(eventsOf(from, 1_000, "quiet/", "quiet0")));
    expect([3, 100, revision].map(watched)).toEqual(["events", "events", "events"]);
    expect(watched(2)).toBe("compacted"); // That put is no longer in the history.
    expect(codeOf(finds(eventsOf(3, 1_000, "busy/", "busy0")))).toBe("compacted");
    expect(values(rangeOf("quiet/", "quiet0", { revision: 3 }))).toEqual(["quiet/a=1"]);
    expect(values(rangeOf("busy/", "busy0", { revision: 3 }))).toEqual(["compacted"]);
    does({ type: "compact", revision: 200 });
    expect([199, 200].map(watched)).toEqual(["compacted", "events"]);
  });

  it("remembers the ranges of dropped deletions, in at most 1,000 intervals", () => {
    const { space, does, finds } = keyspace();
    for (const prefix of ["a", "b", "c"]) does(putOf(`${prefix}/stays`, "1"));
    const from = space.revision + 1;
    for (let at = 0; at < 4_500; at++) {
      does(putOf(`b/${at}`, ""));
      does(deleteOf(`b/${at}`));
    }
    const { deletions, trimmed } = space;
    expect(deletions.length).toBeGreaterThanOrEqual(500);
    expect(deletions.length).toBeLessThanOrEqual(1_000);
    const watched = (key: string, end = "") => codeOf(finds(eventsOf(from, 1_000, key, end)));
    const dropped = Math.floor((trimmed - from) / 2);
    for (let at = 0; at < dropped; at += 10) expect(watched(`b/${at}`)).toBe("compacted");
    for (const range of [["a", "b"], ["c", "\0"], ["b/stays"]] as const)
      expect(watched(...(range as [string, string]))).toBe("events");
    expect(watched("a", "c")).toBe("compacted");
    does({ type: "compact", revision: space.revision });
    expect(space.deletions).toEqual([]);
  });

  it("rejects invalid requests as etcd does", () => {
    const { does } = keyspace();
    expect(codeOf(does(putOf("", "1")))).toBe("emptyKey");
    expect(codeOf(does(deleteOf("")))).toBe("emptyKey");
    expect(codeOf(does(putOf("a", "1", { ignoreValue: true })))).toBe("valueProvided");
    expect(codeOf(does(putOf("a", "", { ignoreValue: true })))).toBe("keyNotFound");
    expect(codeOf(does(putOf("a", "1", { ignoreLease: true, lease: "1" })))).toBe("leaseProvided");
    expect(codeOf(does(putOf("a", "1", { lease: "1" })))).toBe("leaseNotFound");
  });

  it("rejects puts beyond its space limit, and deletes even when it is full", () => {
    const { does } = keyspace();
    does(putOf("a", "1"));
    expect(codeOf(does(putOf("b", "1".repeat(1_000)), 1_000))).toBe("noSpace");
    expect(codeOf(does(putOf("b", "1"), 0))).toBe("noSpace");
    expect(codeOf(does(deleteOf("a"), 0))).toBe("delete");
    expect(codeOf(does({ type: "grant", lease: "1", ttl: 5 }, 63))).toBe("noSpace");
    expect(codeOf(does({ type: "grant", lease: "1", ttl: 5 }, 64))).toBe("lease");
  });

  it("replaces a value by one that is not longer, even when it is full", () => {
    const { does } = keyspace();
    does(putOf("a", "12"));
    expect(codeOf(does(putOf("a", "34"), -1))).toBe("put");
    expect(codeOf(does(putOf("a", "345"), -1))).toBe("noSpace");
    expect(codeOf(does(txnOf([], [deleteOf("a"), putOf("b", "56")], []), 0))).toBe("txn");
  });

  it("hides the service's own keys from its clients", () => {
    const { space, does, finds, values } = keyspace();
    putKey(space, 2, "coterie/x", "1", "0");
    space.revision = 2;
    does(putOf("a", "1"));
    does(putOf("d", "1"));
    expect(values(rangeOf("\0", "\0"))).toEqual(["a=1", "d=1"]);
    expect(values(rangeOf("c", "d"))).toEqual([]);
    expect(values(rangeOf("coterie/", "coterie0"))).toEqual(["permissionDenied"]);
    expect(codeOf(finds(eventsOf(1, 1_000, "coterie/x", "")))).toBe("permissionDenied");
    for (const request of [putOf("coterie/x", "2"), deleteOf("coterie/x"), deleteOf("coterie/", "\0")])
      expect(codeOf(does(request))).toBe("permissionDenied");
    const isThere: Compare = { key: "coterie/x", end: "", type: "version", result: "equal", number: 1 };
    expect(codeOf(does(txnOf([isThere], [], [])))).toBe("permissionDenied");
    expect(codeOf(does(txnOf([], [txnOf([], [], [putOf("coterie/y", "")])], [])))).toBe("permissionDenied");
    expect(does(deleteOf("\0", "\0"))).toMatchObject({ deleted: 2 });
    expect(finds(eventsOf(1))).toMatchObject({ events: [{ kv: { key: "a" } }, { kv: { key: "d" } }, {}, {}] });
    expect(space.keys.size).toBe(1);
  });
});

describe("leases", () => {
  it("delete their keys when they end, all at one revision", () => {
    const { does, applies, finds, values } = keyspace();
    expect(does({ type: "grant", lease: "7", ttl: 60 })).toEqual({ type: "lease", revision: 1, ttl: 60, keys: [] });
    for (const key of ["b", "a", "c"]) does(putOf(key, "1", { lease: "7" }));
    does(putOf("c", "2")); // This put detaches the key from its lease.
    expect(finds({ type: "lease", lease: "7", keys: true })).toMatchObject({ ttl: 60, keys: ["a", "b"] });
    const { response, change } = applies({ type: "revoke", lease: "7" });
    expect(response).toEqual({ type: "done", revision: 6 });
    expect(change).toMatchObject({
      ended: "7",
      events: [{ type: "delete", kv: { key: "a", mod: 6 } }, { kv: { mod: 6 } }],
    });
    expect(values(rangeOf("a", "z"))).toEqual(["c=2"]);
    expect(codeOf(does({ type: "revoke", lease: "7" }))).toBe("leaseNotFound");
  });

  it("of sessions are out of reach for clients", () => {
    const { space, does, finds } = keyspace();
    const lease = leaseOf(7);
    enterLease(space, lease, 10, 0);
    putKey(space, 2, "a", "1", lease);
    space.revision = 2;
    expect(codeOf(finds({ type: "lease", lease, keys: true }))).toBe("leaseNotFound");
    expect(finds({ type: "leases" })).toMatchObject({ leases: [] });
    const commands = [{ type: "renew" }, { type: "revoke" }, { type: "expire", renewal: 0 }] as const;
    for (const command of commands) expect(codeOf(does({ ...command, lease }))).toBe("leaseNotFound");
    expect(codeOf(does({ type: "grant", lease, ttl: 9 }))).toBe("leaseExists");
    expect(codeOf(does({ type: "grant", lease: leaseOf(8), ttl: 9 }))).toBe("leaseExists");
    expect(codeOf(does(putOf("b", "1", { lease })))).toBe("leaseNotFound");
    expect(codeOf(does(putOf("a", "2", { ignoreLease: true })))).toBe("put");
    expect(lookUp(space.leases, lease)).toMatchObject({ keys: ["a"] });
    expect(codeOf(does({ type: "grant", lease: String(2n ** 62n - 1n), ttl: 9 }))).toBe("lease");
  });

  it("keep the lease of a key that is put with ignoreLease", () => {
    const { does, finds } = keyspace();
    does({ type: "grant", lease: "7", ttl: 60 });
    does(putOf("a", "1", { lease: "7" }));
    does(putOf("a", "2", { ignoreLease: true }));
    expect(finds(rangeOf("a"))).toMatchObject({ kvs: [{ value: "2", lease: "7", version: 2 }] });
  });

  it("expire unless they were renewed meanwhile", () => {
    const { does, applies, finds } = keyspace();
    does({ type: "grant", lease: "7", ttl: 60 });
    expect(applies({ type: "renew", lease: "7" }).change?.renewed).toEqual({ lease: "7", ttl: 60, renewal: 2 });
    expect(codeOf(does({ type: "expire", lease: "7", renewal: 1 }))).toBe("leaseNotFound");
    expect(finds({ type: "leases" })).toMatchObject({ leases: [{ lease: "7", ttl: 60, renewal: 2 }] });
    expect(codeOf(does({ type: "expire", lease: "7", renewal: 2 }))).toBe("done");
    expect(finds({ type: "leases" })).toMatchObject({ leases: [] });
  });

  it("have unique renewal numbers: an expiry for one does not end another with the same id", () => {
    const { does } = keyspace();
    does({ type: "grant", lease: "7", ttl: 60 });
    does({ type: "revoke", lease: "7" });
    does({ type: "grant", lease: "7", ttl: 60 });
    expect(codeOf(does({ type: "expire", lease: "7", renewal: 1 }))).toBe("leaseNotFound");
    expect(codeOf(does({ type: "expire", lease: "7", renewal: 2 }))).toBe("done");
  });

  it("last at least two seconds, and are each granted once", () => {
    const { does } = keyspace();
    expect(does({ type: "grant", lease: "7", ttl: 0 })).toMatchObject({ ttl: 2 });
    expect(codeOf(does({ type: "grant", lease: "7", ttl: 9 }))).toBe("leaseExists");
    expect(codeOf(does({ type: "grant", lease: "8", ttl: 9_000_000_001 }))).toBe("ttlTooLarge");
    expect(codeOf(does({ type: "grant", lease: "0", ttl: 9 }))).toBe("leaseNotFound");
    expect(codeOf(does({ type: "renew", lease: "8" }))).toBe("leaseNotFound");
  });
});

describe("changes", () => {
  it("are reported with the previous entry", () => {
    const { applies } = keyspace();
    applies(putOf("a", "1"));
    expect(applies(putOf("a", "2")).change).toEqual({
      revision: 3,
      events: [
        {
          type: "put",
          kv: { key: "a", create: 2, mod: 3, version: 2, value: "2", lease: "0" },
          prev: { key: "a", create: 2, mod: 2, version: 1, value: "1", lease: "0" },
        },
      ],
      renewed: null,
      ended: null,
    });
    expect(applies(deleteOf("x")).change).toBeNull();
    expect(applies(deleteOf("a")).change?.events).toMatchObject([
      { type: "delete", kv: { mod: 4, version: 0, value: "" } },
    ]);
  });

  it("are returned from any revision on, in whole revisions up to a number of bytes", () => {
    const { does, finds } = keyspace();
    does(putOf("a", "1"));
    does(txnOf([], [putOf("b", "1"), putOf("c", "1")], []));
    does(deleteOf("a"));
    const from = (revision: number, maxBytes: number) => {
      const found = finds(eventsOf(revision, maxBytes));
      return found.type === "events"
        ? [found.events.map(({ type, kv }) => `${type} ${kv.key}`), found.next]
        : codeOf(found);
    };
    expect(from(1, 1_000_000)).toEqual([["put a", "put b", "put c", "delete a"], 5]);
    expect(from(3, 0)).toEqual([["put b", "put c"], 4]);
    expect(from(4, 0)).toEqual([["delete a"], 5]);
    expect(from(5, 0)).toEqual([[], 5]);
    does({ type: "compact", revision: 3 });
    expect(from(2, 0)).toBe("compacted");
    expect(from(3, 1_000_000)).toEqual([["put b", "put c", "delete a"], 5]);
  });
});
