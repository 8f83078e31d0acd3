/**
 * Checks that a snapshot belongs to one index although it is written while the log continues, and that it is read one
 * chunk at a time.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { readAll } from "../../../../test/protocols/service/one-replica.ts";
import { Chunk } from "../../../core/chunk.ts";
import type { Context } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { putOf } from "../keyspace/new-requests.ts";
import { entriesOf, type Table } from "../keyspace/table.ts";
import { type Operation, type SessionOperation, STATE_MACHINE_VERSION } from "./operations.ts";
import { type Replica, replica } from "./replica.ts";

const machines = {
  /** Changes its state in place, which is not allowed. */
  sum: {
    init: () => [],
    apply(state: unknown, by: string): readonly [unknown, string] {
      (state as string[]).push(by);
      return [state, ""];
    },
  },
};
const KEYS = 4_000;
const MUCH = 2 ** 30;
const put = (key: string, value: string): Operation => ({ type: "put", map: "m", key, value, isLeased: false });
const name = fc.constantFrom("a", "b", "é");
const wait = fc.nat({ max: 3 });
const key = fc.nat({ max: KEYS }).map((number) => `key-${number}`);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    type: fc.constant("put"),
    map: fc.constantFrom("m", "n"),
    key,
    value: name,
    isLeased: fc.boolean(),
  } as const),
  fc.record({ type: fc.constant("delete"), map: fc.constant("m"), key } as const),
  fc.record({ type: fc.constant("add"), name, by: fc.integer({ min: -5, max: 5 }) } as const),
  fc.record({ type: fc.constant("enqueue"), name, value: name } as const),
  fc.record({ type: fc.constant("take"), name, wait } as const),
  fc.record({ type: fc.constant("stopTaking"), name, wait } as const),
  fc.record({ type: fc.constant("arrive"), name, wait, parties: fc.constant(3) } as const),
  fc.record({ type: fc.constant("withdraw"), name, wait } as const),
  fc.record({
    type: fc.constant("acquire"),
    name,
    wait,
    mode: fc.constantFrom("exclusive", "shared"),
    permits: fc.constant(1),
    capacity: fc.constant(2),
    note: name,
  } as const),
  fc.record({ type: fc.constant("enterGroup"), name, wait, setting: fc.constant("") } as const),
  fc.record({ type: fc.constant("leaveGroup"), name } as const),
  fc.record({
    type: fc.constant("say"),
    name,
    wait,
    number: fc.constantFrom(0, 1, 2),
    to: fc.constant(null),
    text: name,
  } as const),
  fc.record({ type: fc.constant("execute"), machine: fc.constantFrom("sum", "undefined"), command: name } as const),
  key.map((each) => ({ type: "keys", caller: "", command: putOf(each, "v", { lease: "7" }) }) as const),
);

const grant: Operation = { type: "keys", caller: "", command: { type: "grant", lease: "7", ttl: 60 } };

/** Removes the boundaries between blocks. */
const flat = (_key: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && "blocks" in value ? [...entriesOf(value as Table<unknown>)] : value;

/** Creates a replica, and collects the snapshots that it takes. */
function saver(self = 0) {
  const protocol = replica({ maxBytes: 2 ** 24, maxHistoryBytes: 4_000, chunkChars: 20_000 }, machines);
  const state = protocol.init(self, []);
  const [first, saved] = [{ 1: 1, 2: 1 } as Record<number, number>, [] as { index: number; snapshot: Chunk[] }[]];
  const emit = (event: Replica["event"]): void => {
    if (event.type === "saved") saved.push(event);
  };
  const none = (): void => {};
  const ctx = { self, peers: [], emit, setTimer: none, persist: none, compact: none } as unknown as Context<Replica>;
  const give = (command: Replica["command"]): void => dispatch(protocol, state, { kind: "command", command }, ctx);
  const go = (timer: Replica["timer"]): void => dispatch(protocol, state, { kind: "timeout", timer }, ctx);
  function propose(client: number, operations: readonly (Operation | SessionOperation)[]): void {
    const numbers = { life: 1, round: 1, acknowledged: Math.max(0, (first[client] ?? 1) - 3), first: first[client] };
    first[client] = (first[client] ?? 1) + operations.length;
    const command = { client, sequence: 1, operation: JSON.stringify({ type: "operations", ...numbers, operations }) };
    dispatch(protocol, state, { kind: "command", command: { type: "decided", index: state.index + 1, command } }, ctx);
  }
  return { state, saved, propose, give, go };
}

it("belongs to the index where it began, even if commands are applied while it is written", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(1, 2), operation), { minLength: 30, maxLength: 60 }), (steps) => {
      const { state, saved, propose, go } = saver();
      const stood = new Map<number, string>();
      const note = (): void =>
        void stood.set(state.index, JSON.stringify({ data: state.data, digest: state.digest }, flat));
      propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
      propose(1, [{ type: "execute", machine: "undefined", command: "1" }]);
      propose(2, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
      propose(2, [grant]);
      for (let from = 0; from < KEYS; from += 1_000)
        propose(
          1,
          Array.from({ length: 1_000 }, (_, at) => put(`key-${from + at}`, "x".repeat(64))),
        );
      note();
      for (const [client, each] of steps) {
        if (state.saving === null) state.unsaved = MUCH; // Make the next one due.
        propose(client, [each]);
        note();
        if (state.saving !== null) go("save");
      }
      const late = saved.filter(({ index }) => stood.has(index));
      expect(late.length).toBeGreaterThan(0);
      expect(late.length).toBeLessThan(steps.length / 4); // Writing a snapshot spans several log entries.
      for (const { index, snapshot } of late) {
        const { data, digest } = readAll(snapshot);
        expect(JSON.stringify({ data, digest }, flat) === stood.get(index)).toBe(true);
      }
    }),
    { numRuns: 10 },
  );
});

it("begins at another index at each member, so that a majority keeps running", () => {
  const begun = [1, 2, 3, 4, 5, 6, 7].map((self) => {
    const { saved, propose, state, go } = saver(self);
    propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
    while (saved.length < 4) {
      propose(1, [put(`key-${saved.length}`, "x".repeat(10_000))]);
      while (state.saving !== null) go("save");
    }
    return saved.map(({ index }) => index);
  });
  const all = begun.flat();
  expect(new Set(begun.map(([first]) => first)).size).toBe(begun.length);
  for (const place of all) expect(all.filter((other) => other === place).length).toBeLessThan(begun.length / 2);
});

it("is read a chunk at a time, and later commands are performed after it, in order", () => {
  const from = saver();
  from.propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
  from.propose(
    1,
    Array.from({ length: 1_000 }, (_, at) => put(`key-${at}`, "x".repeat(64))),
  );
  from.state.unsaved = MUCH;
  from.propose(1, [put("last", "1")]);
  while (from.state.saving !== null) from.go("save");
  const { index, snapshot } = from.saved[0] as { index: number; snapshot: Chunk[] };
  expect(snapshot.length).toBeGreaterThan(2);

  const protocol = replica({ chunkChars: 20_000 }, machines);
  const state = protocol.init(0, []);
  const told: Replica["event"][] = [];
  const none = (): void => {};
  const emit = (event: Replica["event"]): void => void told.push(event);
  const ctx = { self: 0, peers: [], emit, setTimer: none, compact: none } as unknown as Context<Replica>;
  const give = (command: Replica["command"]): void => dispatch(protocol, state, { kind: "command", command }, ctx);
  give({ type: "installed", index, snapshot });
  give({ type: "query", request: 1, query: { type: "get", map: "m", key: "last" } });
  const numbers = { life: 1, round: 2, acknowledged: 1_001, first: 1_003 };
  const operation = JSON.stringify({ type: "operations", ...numbers, operations: [put("last", "2")] });
  give({ type: "decided", index: index + 1, command: { client: 1, sequence: 2, operation } });
  give({ type: "query", request: 2, query: { type: "get", map: "m", key: "last" } });
  for (let reads = 1; reads < snapshot.length; reads++) {
    expect(told).toEqual([]);
    dispatch(protocol, state, { kind: "timeout", timer: "install" }, ctx);
  }
  const answers = told.flatMap((event) => (event.type === "queried" ? [event.answer] : []));
  expect(answers).toMatchObject([{ entry: { value: "1" } }, { entry: { value: "2" } }]);
  expect(state.index).toBe(index + 1);
});

it.each([
  ["without its last chunk", (snapshot: Chunk[]) => snapshot.slice(0, -1)],
  ["with an unknown line", (snapshot: Chunk[]) => [Chunk.of('{"map":"m","keys":["k"],"values":["1"]}\n'), ...snapshot]],
  ["without its end", (snapshot: Chunk[]) => [new Chunk((snapshot[0] as Chunk).bytes.slice(0, -5))]],
])("is rejected %s", (_how, cut) => {
  const { state, saved, propose, go } = saver();
  propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }, put("long", "x".repeat(25_000))]);
  state.unsaved = MUCH;
  propose(1, [put("last", "1")]);
  while (state.saving !== null) go("save");
  expect(() => readAll(cut(saved[0]?.snapshot ?? []))).toThrow(expect.objectContaining({ code: "bad-snapshot" }));
});

it("grows at least four times as fast as the log, so that it ends under any load", () => {
  const { state, saved, propose } = saver();
  propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
  for (let from = 0; from < KEYS; from += 1_000)
    propose(
      1,
      Array.from({ length: 1_000 }, (_, at) => put(`key-${from + at}`, "x".repeat(64))),
    );
  state.unsaved = MUCH;
  propose(1, [put("last", "1")]);
  const { saving } = state;
  expect(saving).not.toBeNull();
  const before = saved.length;
  let chars = 0;
  while (state.saving === saving) {
    propose(1, [put("more", "x".repeat(1_000))]); // No timer expires in between.
    chars += 1_000;
  }
  const length = (saved.at(-1)?.snapshot ?? []).reduce((sum, chunk) => sum + chunk.length, 0);
  expect(saved.length).toBe(before + 1);
  expect(length).toBeGreaterThan(300_000);
  expect(chars).toBeLessThan(length / 4 + 20_000);
});

it("replaces another one that is being read, with its own members", () => {
  const from = saver();
  const snapshots: { index: number; snapshot: Chunk[] }[] = [];
  from.propose(1, [{ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION }]);
  from.propose(1, [
    {
      type: "foundMembers",
      members: [0, 1].map((member) => ({ member, address: `10.0.0.${member}:7100`, journal: `j${member}` })),
    },
  ]);
  const configurations = [
    { voters: [0, 1], learners: [] },
    { voters: [0, 1, 2], learners: [] },
  ];
  for (const configuration of configurations) {
    from.give({ type: "reconfigured", ...configuration });
    from.propose(
      1,
      Array.from({ length: 500 }, (_, at) => put(`key-${at}`, "x".repeat(64))),
    );
    from.state.unsaved = MUCH;
    from.propose(1, [put("last", "1")]);
    while (from.state.saving !== null) from.go("save");
    snapshots.push(from.saved.at(-1) as { index: number; snapshot: Chunk[] });
  }
  const expected = JSON.stringify(from.state.data, flat);

  const to = saver();
  for (const [at, { index, snapshot }] of snapshots.entries()) {
    expect(snapshot.length).toBeGreaterThan(1);
    to.give({ type: "installed", index, snapshot });
    to.give({ type: "reconfigured", ...(configurations[at] as (typeof configurations)[number]) });
  }
  while (to.state.installing !== null || to.state.later.length > 0) to.go("install");
  expect(JSON.stringify(to.state.data, flat)).toBe(expected);
});
