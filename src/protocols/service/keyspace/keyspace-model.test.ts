/** Applies random commands to the keyspace, and to a model that copies everything at each revision. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerQuestion, applyCommand } from "./commands.ts";
import { deleteOf, putOf, rangeOf, txnOf } from "./new-requests.ts";
import { changeBytes, covers, emptyKeyspace, entryBytes, type Keyspace, LEASE_BYTES, NO_LEASE, trim } from "./store.ts";
import { keysOf, valuesOf } from "./table.ts";
import type { Compare, KeyEvent, KeyspaceCommand, KeyValue, RequestOp } from "./vocabulary.ts";

const ROOM = 1_000_000;
/** A limit that some commands reach. */
const LIMIT = 250;
const KEYS = ["a", "b", "c", "ÿ"];

type Entries = ReadonlyMap<string, KeyValue>;

/** The state and the change at each revision. */
class Model {
  readonly states: Entries[] = [new Map(), new Map()];
  readonly leases = new Map<string, number>();
  renewals = 0;
  compacted = 0;

  get revision(): number {
    return this.states.length - 1;
  }

  get now(): Entries {
    return this.states.at(-1) as Entries;
  }

  apply(command: KeyspaceCommand): void {
    const next = new Map(this.now);
    switch (command.type) {
      case "compact":
        if (command.revision > this.compacted && command.revision <= this.revision) this.compacted = command.revision;
        return;
      case "grant":
        if (!this.leases.has(command.lease)) this.renew(command.lease);
        return;
      case "renew":
        if (this.leases.has(command.lease)) this.renew(command.lease);
        return;
      case "revoke":
      case "expire":
        if (command.type === "expire" && this.leases.get(command.lease) !== command.renewal) return;
        this.leases.delete(command.lease);
        for (const [key, { lease }] of next) if (lease === command.lease) next.delete(key);
        break;
      default:
        if (!this.can(command)) return;
        this.perform(next, command);
    }
    if (!isSame(next, this.now)) this.states.push(next);
  }

  /** Returns the changes at a revision, sorted. */
  changesAt(revision: number): string[] {
    const [before, after] = [this.states[revision - 1], this.states[revision]] as [Entries, Entries];
    const puts = [...after].filter(([key, { mod }]) => before.get(key)?.mod !== mod).map(([key]) => `put ${key}`);
    const deletes = [...before.keys()].filter((key) => !after.has(key)).map((key) => `delete ${key}`);
    return [...deletes, ...puts].sort();
  }

  renew(lease: string): void {
    this.renewals += 1;
    this.leases.set(lease, this.renewals);
  }

  /** Returns whether the request can succeed. Only a missing lease can make a generated request fail. */
  can(request: RequestOp): boolean {
    if (request.type === "put") return request.lease === NO_LEASE || this.leases.has(request.lease);
    return request.type !== "txn" || this.branchOf(request).every((each) => this.can(each));
  }

  branchOf({ compare, success, failure }: Extract<RequestOp, { type: "txn" }>): RequestOp[] {
    const holds = compare.every((each) => (this.now.has(each.key) ? 1 : 0) === (each.result === "equal" ? 0 : 1));
    return holds ? success : failure;
  }

  perform(next: Map<string, KeyValue>, request: RequestOp): void {
    const mod = this.revision + 1;
    if (request.type === "txn") for (const each of this.branchOf(request)) this.perform(next, each);
    if (request.type === "delete") for (const key of [...next.keys()]) if (covers(request, key)) next.delete(key);
    if (request.type !== "put") return;
    const { key, value, lease } = request;
    const { create = mod, version = 0 } = next.get(key) ?? {};
    next.set(key, { key, value, lease, create, mod, version: version + 1 });
  }
}

const isSame = (a: Entries, b: Entries): boolean =>
  a.size === b.size && [...a].every(([key, { mod }]) => b.get(key)?.mod === mod);

const sorted = (entries: Entries): KeyValue[] => [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1));

const key = fc.constantFrom(...KEYS);
const lease = fc.constantFrom("1", "2");
const end = fc.constantFrom("", "\0", "c");
const put = fc
  .tuple(key, fc.string({ maxLength: 3, unit: "binary-ascii" }), fc.option(lease, { nil: NO_LEASE }))
  .map(([at, value, of]) => putOf(at, value, { lease: of }));
const remove = fc.tuple(key, end).map(([from, to]) => deleteOf(from, to));
/** Generates comparisons of whether a key exists. */
const compare: fc.Arbitrary<Compare> = fc
  .tuple(key, fc.constantFrom("equal" as const, "greater" as const))
  .map(([at, result]) => ({ type: "version", key: at, end: "", result, number: 0 }));
const writes = fc.oneof(
  fc.uniqueArray(put, { maxLength: 3, selector: (each) => each.key }),
  fc.array(remove, { maxLength: 2 }),
);
const txn = fc
  .tuple(fc.array(compare, { maxLength: 2 }), writes, writes)
  .map(([comparing, success, failure]) => txnOf(comparing, success, failure));
const command: fc.Arbitrary<KeyspaceCommand> = fc.oneof(
  { weight: 4, arbitrary: put },
  { weight: 2, arbitrary: remove },
  { weight: 2, arbitrary: txn },
  fc.record({ type: fc.constant("compact" as const), revision: fc.nat(20) }),
  fc.record({ type: fc.constant("grant" as const), lease, ttl: fc.constant(9) }),
  fc.record({ type: fc.constantFrom("renew" as const, "revoke" as const), lease }),
  fc.record({ type: fc.constant("expire" as const), lease, renewal: fc.integer({ min: 1, max: 4 }) }),
);

function expectSame(space: Keyspace, model: Model): void {
  const { revision, compacted } = model;
  expect(space).toMatchObject({ revision, compacted });
  for (let at = Math.max(1, compacted); at <= revision; at++) {
    const found = answerQuestion(space, rangeOf("\0", "\0", { revision: at }));
    expect(found.type === "range" && found.kvs).toEqual(sorted(model.states[at] as Entries));
  }
  for (const [id, renewal] of model.leases) {
    const keys = sorted(model.now)
      .filter((each) => each.lease === id)
      .map((each) => each.key);
    expect(answerQuestion(space, { type: "lease", lease: id, keys: true })).toMatchObject({ ttl: 9, keys });
    expect(valuesOf(space.leases)[keysOf(space.leases).indexOf(id)]?.renewal).toBe(renewal);
  }
  expect(keysOf(space.leases)).toEqual([...model.leases.keys()].sort());
}

/** Applies events to the entries before them. */
function afterEvents(before: Entries, events: readonly KeyEvent[]): Entries {
  const entries = new Map(before);
  for (const { type, kv, prev } of events) {
    expect(prev).toEqual(entries.get(kv.key) ?? null);
    if (type === "put") entries.set(kv.key, kv);
    else entries.delete(kv.key);
  }
  return entries;
}

describe("a keyspace, against a model of it", () => {
  it("equals the model at each revision that is kept", () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        const space = emptyKeyspace();
        const model = new Model();
        for (const each of commands) {
          const before = model.now;
          const { change } = applyCommand(space, each, ROOM);
          model.apply(each);
          expect(sorted(afterEvents(before, change?.events ?? []))).toEqual(sorted(model.now));
        }
        expectSame(space, model);
        const from = Math.max(1, space.compacted);
        const told = answerQuestion(space, { type: "events", from, maxBytes: ROOM, key: "\0", end: "\0" });
        const events = told.type === "events" ? told.events : [];
        const later = events.filter(({ kv }) => kv.mod > from);
        expect(sorted(afterEvents(model.states[from] as Entries, later))).toEqual(sorted(model.now));
        // Changes at the oldest revision are included, even deletions, but without their previous entries.
        const oldest = events.filter(({ kv }) => kv.mod === from).map(({ type, kv }) => `${type} ${kv.key}`);
        expect(oldest.sort()).toEqual(model.changesAt(from));
      }),
      { numRuns: 300 },
    );
  });

  it("returns all changes of a range since a revision with the previous entries, or refuses if it has dropped one", () => {
    const trims = fc.record({ type: fc.constant("trim" as const), back: fc.nat(5) });
    const all = fc.array(fc.oneof({ weight: 5, arbitrary: command }, trims), { maxLength: 40 });
    const intervals = KEYS.flatMap((from) => ["", "\0", "c"].map((to) => ({ key: from, end: to })));
    let quiet = 0;
    fc.assert(
      fc.property(all, (commands) => {
        const space = emptyKeyspace();
        const model = new Model();
        for (const each of commands) {
          if (each.type === "trim") {
            const to = model.revision - each.back;
            if (to > Math.max(1, space.compacted, space.trimmed)) trim(space, to);
            continue;
          }
          applyCommand(space, each, ROOM);
          model.apply(each);
          // Reads at an earlier revision use an index of the history, which follows all later changes.
          answerQuestion(space, rangeOf("b", "", { revision: model.revision - 1 }));
        }
        expect(JSON.parse(JSON.stringify(space))).toEqual(space);
        const { trimmed } = space;
        for (const interval of intervals)
          for (let from = Math.max(2, model.compacted + 1); from <= model.revision; from++) {
            const changed = (at: number) =>
              model.changesAt(at).filter((change) => covers(interval, change.slice(change.indexOf(" ") + 1)));
            const revisions = Array.from({ length: model.revision - from + 1 }, (_, at) => from + at);
            const isDropped = revisions.some((at) => at < trimmed && changed(at).length > 0);
            const found = answerQuestion(space, { type: "events", from, maxBytes: ROOM, ...interval });
            const read = answerQuestion(space, rangeOf(interval.key, interval.end, { revision: from - 1 }));
            if (isDropped) {
              expect([read, found]).toMatchObject([{ code: "compacted" }, { code: "compacted" }]);
              continue;
            }
            if (from < trimmed) quiet += 1;
            const events = found.type === "events" ? found.events : null;
            const told = events?.filter(({ kv }) => covers(interval, kv.key));
            expect(told?.map(({ type, kv }) => `${kv.mod} ${type} ${kv.key}`).sort()).toEqual(
              revisions.flatMap((at) => changed(at).map((change) => `${at} ${change}`)).sort(),
            );
            const stood = sorted(model.states[from - 1] as Entries).filter((entry) => covers(interval, entry.key));
            expect(read.type === "range" && read.kvs).toEqual(stood);
          }
      }),
      { numRuns: 200 },
    );
    expect(quiet).toBeGreaterThan(5);
  });

  it("counts the bytes of current values, leases and the history", () => {
    const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
        const space = emptyKeyspace();
        for (const each of commands) {
          const before = space.bytes;
          applyCommand(space, each, LIMIT - before);
          expect(space.bytes).toBeLessThanOrEqual(Math.max(LIMIT, before));
          const { keys, leases, history, bytes, historyBytes } = space;
          expect(bytes).toBe(sum(valuesOf(keys).map(entryBytes)) + LEASE_BYTES * leases.size);
          expect(historyBytes).toBe(sum(history.map(changeBytes)));
        }
        expect(JSON.parse(JSON.stringify(space))).toEqual(space);
      }),
      { numRuns: 100 },
    );
  });
});
