/** Checks the initial state of a restored cluster, and recovery from one log, with only the state machine. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import type { Raft } from "../../consensus/raft/vocabulary.ts";
import { mapKey } from "../keyspace/layout.ts";
import { putOf } from "../keyspace/new-requests.ts";
import { entryOf, sessionOfLease } from "../keyspace/store.ts";
import { entriesOf as entries, keysOf, type Table, valuesOf } from "../keyspace/table.ts";
import type { KeyspaceCommand, KeyValue } from "../keyspace/vocabulary.ts";
import { foundingRecords } from "./founding.ts";
import { ENDPOINTS, FIRST_CLIENT, type Operation, type Proposal, STATE_MACHINE_VERSION } from "./operations.ts";
import { restored, revisionBeyond } from "./restored.ts";
import { salvaged } from "./salvage.ts";
import { type Data, emptyData } from "./state.ts";
import { dataProblem } from "./state-shape.ts";

const MEMBERS = [1, 2, 3];
const text = fc.constantFrom("a", "b", "é\u{1f98a}");
const wait = fc.nat({ max: 5 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    type: fc.constant("put"),
    map: fc.constantFrom("a", "b", ENDPOINTS),
    key: text,
    value: fc.string(),
    isLeased: fc.boolean(),
  } as const),
  fc.record({ type: fc.constant("delete"), map: text, key: text } as const),
  fc.record({ type: fc.constant("add"), name: text, by: fc.integer({ min: -5, max: 5 }) } as const),
  fc.record({ type: fc.constant("enqueue"), name: text, value: fc.string() } as const),
  fc.record({ type: fc.constant("take"), name: text, wait } as const),
  fc.record({ type: fc.constant("arrive"), name: text, wait, parties: fc.constant(3) } as const),
  fc.record({ type: fc.constant("execute"), machine: text, command: fc.string() } as const),
  fc.record({
    type: fc.constant("acquire"),
    name: text,
    wait,
    mode: fc.constantFrom("exclusive", "shared"),
    permits: fc.constant(1),
    capacity: fc.constant(2),
    note: fc.string(),
  } as const),
);
const steps = fc.array(fc.tuple(fc.constantFrom(...MEMBERS, FIRST_CLIENT + 4), operation), { maxLength: 60 });
const machines = {
  a: { init: () => 0, apply: (state: unknown, by: string) => [(state as number) + by.length, ""] as const },
};

function stateAfter(done: readonly (readonly [number, Operation])[]): Data {
  const one = oneReplica({}, machines);
  for (const member of [...MEMBERS, FIRST_CLIENT + 4]) one.open(member);
  for (const [member, each] of done) one.apply(member, each);
  return one.data;
}

const entriesOf = <V>(table: Table<V>): [string, V][] => [...entries(table)];
const valueIn = ({ keyspace }: Data): string | undefined => entryOf(keyspace, mapKey("m", "k"))?.value;
const lead = ({ keyspace }: Data, elapsedMs = 0): number => revisionBeyond(keyspace.revision, elapsedMs);

describe("a restored cluster", () => {
  it("has all keys, counters, items and machines, but no sessions and nothing that they held", () => {
    fc.assert(
      fc.property(steps, fc.nat(), (done, elapsedMs) => {
        const saved = stateAfter(done);
        const before = JSON.stringify(saved);
        const data = restored(saved, lead(saved, elapsedMs));
        expect(JSON.stringify(saved)).toBe(before);
        expect(dataProblem(JSON.parse(JSON.stringify(data)))).toBeNull();
        expect(data).toMatchObject({ sessions: [], lives: {}, machines: saved.machines });
        expect([keysOf(data.locks), keysOf(data.barriers)]).toEqual([[], []]);
        const isKept = ({ key, lease }: KeyValue): boolean =>
          sessionOfLease(lease) === null && !key.startsWith(mapKey(ENDPOINTS, ""));
        expect(valuesOf(data.keyspace.keys)).toEqual(valuesOf(saved.keyspace.keys).filter(isKept));
        for (const [name, { items, taken }] of entriesOf(saved.queues)) {
          const all = [...taken.toSorted((a, b) => a.id - b.id), ...items].map(({ value }) => value);
          const now = entriesOf(data.queues).find(([other]) => other === name)?.[1];
          expect(now?.items.map(({ value }) => value) ?? []).toEqual(all);
          expect([now?.taken ?? [], now?.takers ?? []]).toEqual([[], []]);
        }
        const again = restored(data, lead(data));
        const { revision, compacted } = again.keyspace;
        const { begun, forgottenClients } = again;
        const keyspace = { ...data.keyspace, revision, compacted };
        expect(again).toEqual({ ...data, keyspace, begun, forgottenClients });
      }),
    );
  });

  it("continues above all revisions that the old one can have used", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (revision, seconds) => {
        const perSecond = 1_000_000;
        expect(revisionBeyond(revision, seconds * 1_000)).toBeGreaterThan(revision + seconds * perSecond);
      }),
    );
    expect(revisionBeyond(5, -10_000)).toBe(5 + 2 ** 40); // The clock was set back.
    expect(() => revisionBeyond(2 ** 52, 0)).toThrow("expected a revision below");
  });

  it("drops the addresses of old members, and has room for others", () => {
    const put = { type: "put", map: ENDPOINTS, key: "1", value: '"http://10.0.0.1:7300"', isLeased: false } as const;
    const saved = stateAfter([[1, put]]);
    expect(keysOf(saved.keyspace.keys)).toEqual([mapKey(ENDPOINTS, "1")]);
    expect(restored(saved, lead(saved))).toMatchObject({ keyspace: { keys: { size: 0 }, bytes: 0 } });
  });

  it("knows no client of the old one, and refuses to resume its watches", () => {
    const saved = stateAfter([]);
    const { keyspace, forgottenClients } = restored(saved, lead(saved));
    expect(forgottenClients).toBe(FIRST_CLIENT + keyspace.revision);
    expect(keyspace).toMatchObject({ compacted: keyspace.revision, history: [], historyBytes: 0 });
  });

  it("opens no session with a number that the old one can have used", () => {
    const saved = stateAfter([]);
    expect(saved.begun).toBe(4);
    const data = restored(saved, lead(saved));
    expect(data.begun - saved.begun).toBeGreaterThanOrEqual(2 ** 40);
  });

  it("keeps the leases that clients of etcd were granted, and their keys", () => {
    const keys = (command: KeyspaceCommand): [number, Operation] => [1, { type: "keys", caller: "", command }];
    const saved = stateAfter([
      keys({ type: "grant", lease: "7", ttl: 60 }),
      keys(putOf("a", "1", { lease: "7" })),
      keys(putOf("a", "2", { lease: "7" })),
    ]);
    const { keyspace } = restored(saved, lead(saved));
    expect(valuesOf(keyspace.keys)).toMatchObject([{ key: "a", value: "2", mod: 3, version: 2, lease: "7" }]);
    expect(entriesOf(keyspace.leases)).toEqual([["7", { ttl: 60, renewal: 1, keys: ["a"] }]]);
  });
});

describe("one log", () => {
  const entry = (index: number, done: Operation, life = 1): Raft["record"] => {
    const opening = { type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION } as const;
    const operations = index === 1 ? [opening, done] : [done];
    const first = index === 1 ? 1 : index + 1;
    const proposal: Proposal = { type: "operations", life, round: 1, acknowledged: 0, first, operations };
    const command = { client: 1, sequence: index, operation: JSON.stringify(proposal) };
    return { type: "appended", entries: [{ type: "command", term: 1, command }] };
  };
  const put = (value: string): Operation => ({ type: "put", map: "m", key: "k", value, isLeased: false });

  it("yields its snapshot, and all entries after it", () => {
    const records = [entry(1, put("1")), entry(2, put("2")), entry(3, { type: "add", name: "n", by: 4 })];
    const { data, ...rest } = salvaged(MEMBERS, records);
    expect(rest).toEqual({ committed: 0, lastIndex: 3, lastTerm: 1, voters: MEMBERS });
    expect(valueIn(data)).toBe("2");
    expect(entryOf(data.keyspace, "counter/n")?.value).toBe("4");
    const cut = salvaged(MEMBERS, [...records, { type: "truncated", lastIndex: 1 }]);
    expect(valueIn(cut.data)).toBe("1");
  });

  it("of a new cluster begins with the data that the cluster was founded from", () => {
    const records = foundingRecords(restored(emptyData(), 100), [3, 1]);
    expect(salvaged([1, 3], records)).toMatchObject({
      data: { keyspace: { revision: 101 } },
      committed: 1,
      lastIndex: 1,
      voters: [1, 3],
    });
  });

  it("keeps any number of commands of machines that only members define", () => {
    const many = Array.from({ length: 12_000 }, (_, at) =>
      entry(at + 1, { type: "execute", machine: "m", command: `${at}` }),
    );
    expect(valuesOf(salvaged(MEMBERS, many).data.machines)[0]?.pending).toHaveLength(12_000);
  });
});

describe("data from a file", () => {
  const lock = { capacity: 1, holders: [], waiters: [] };
  const broken: readonly [string, (data: Data) => unknown][] = [
    ["no object", () => null],
    ["a field is missing", ({ begun: _begun, ...data }) => data],
    ["an unknown field", (data) => ({ ...data, more: 1 })],
    [
      "a value is of another kind",
      (data) => ({ ...data, queues: { size: 1, blocks: [{ keys: ["a"], values: ["1"] }] } }),
    ],
    [
      "a table has fewer values than names",
      (data) => ({ ...data, locks: { size: 2, blocks: [{ keys: ["a", "b"], values: [lock] }] } }),
    ],
    [
      "names are not sorted",
      (data) => ({ ...data, locks: { size: 2, blocks: [{ keys: ["b", "a"], values: [lock, lock] }] } }),
    ],
    ["machines is not a list", (data) => ({ ...data, machines: 3 })],
  ];
  it.each(broken)("is rejected if %s", (_why, damage) => {
    expect(dataProblem(damage(stateAfter([])))).toEqual(expect.any(String));
  });
});
