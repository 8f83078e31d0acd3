import { expect, test } from "vitest";
import { oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { KEYSPACE, keyspaceMachine } from "../keyspace/built-in.ts";
import { putOf } from "../keyspace/keyspace-requests.fixture.ts";
import { keysOf, valuesOf } from "../keyspace/table.ts";
import type { Keyspace } from "../keyspace/versions.ts";
import type { KeyspaceCommand, KeyspaceResponse } from "../keyspace/vocabulary.ts";
import { concernsOwnNames } from "./large-operations.ts";
import type { BuiltInMachine } from "./machines.ts";
import { ENDPOINTS, ETCD_ENDPOINTS, type Operation } from "./operations.ts";
import { restored } from "./restored.ts";
import { dataProblem } from "./state-shape.ts";

/** A state machine that keeps texts within its size limit. */
const texts: BuiltInMachine = {
  init: () => [],
  run(state, text, room) {
    if (text.length > room) throw new Error(`room for ${room}`);
    (state as string[]).push(text);
    return { result: "", change: text === "quiet" ? null : { text } };
  },
  ask: (state) => JSON.stringify(state),
  copyOf: (state) => [...(state as string[])],
  bytesOf: (state) => (state as string[]).join("").length,
};

const execute = (command: string): Operation => ({ type: "execute", machine: "coterie/texts", command });
const put = (key: string, value: string): Operation => ({ type: "put", map: "m", key, value, isLeased: false });

test("a built-in machine shares the space limit of keys and values, and reports its changes", () => {
  const { apply, ask, data, events, open } = oneReplica({ maxBytes: 100, maxMachines: 0 }, { "coterie/texts": texts });
  open(0);
  apply(0, put("k", "v".repeat(20)));
  const before = data.bytes;
  expect(apply(0, execute("quiet"))).toEqual({ type: "executed", result: "" });
  expect(apply(0, execute("12345"))).toEqual({ type: "executed", result: "" });
  expect(data.bytes).toBe(before + 10);
  const room = 100 - data.bytes;
  expect(apply(0, execute("x".repeat(room + 1)))).toMatchObject({ code: "machine-failed", reason: `room for ${room}` });
  expect(apply(0, execute("x".repeat(room)))).toMatchObject({ type: "executed" });
  expect(apply(0, put("l", "v"))).toMatchObject({ code: "full" });
  const changes = events().filter(({ type }) => type === "machineChanged");
  expect(changes[0]).toEqual({ type: "machineChanged", machine: "coterie/texts", change: { text: "12345" } });
  expect(changes).toHaveLength(2);
  const { answer } = ask({ type: "ask", machine: "coterie/texts", question: "" }) as { answer: string };
  expect(JSON.parse(answer)).toEqual(["quiet", "12345", "x".repeat(room)]);
});

test("etcd's keyspace continues above all earlier revisions in a restored cluster", () => {
  const { apply, data, open } = oneReplica({}, { [KEYSPACE]: keyspaceMachine });
  open(0);
  const keyspace = (command: KeyspaceCommand): KeyspaceResponse => {
    const operation: Operation = {
      type: "execute",
      machine: KEYSPACE,
      command: JSON.stringify({ asker: "", command }),
    };
    const result = apply(0, operation);
    return JSON.parse(result.type === "executed" ? result.result : "") as KeyspaceResponse;
  };
  for (const value of ["1", "2"]) keyspace(putOf("a", value));
  keyspace({ type: "grant", lease: "7", ttl: 60 });
  expect(keyspace(putOf("b", "1", { lease: "7" }))).toMatchObject({ revision: 4 });
  expect(data.revision).toBeGreaterThanOrEqual(3); // The keyspace starts at revision 1, and the state machine at 0.
  const again = restored(data, 1_000);
  const { state, bytes } = valuesOf(again.machines)[0] as { state: Keyspace; bytes: number };
  expect(state).toMatchObject({ revision: again.revision + 1, compacted: again.revision + 1, history: [] });
  expect(keysOf(state.keys)).toEqual(["a", "b"]);
  expect(valuesOf(state.keys)).toMatchObject([[{ value: "2", mod: 3 }], [{ lease: "7" }]]);
  expect(keysOf(state.leases)).toEqual(["7"]);
  expect({ machine: bytes, all: again.bytes }).toEqual({ machine: state.bytes, all: state.bytes });
  expect(dataProblem(again)).toBeNull();
});

test("detects operations that change or compare reserved names, and no others", () => {
  const putIn = (map: string) => ({ type: "put", map, key: "1", value: "{}", isLeased: false }) as const;
  const transaction = (parts: object) =>
    ({ type: "transaction", compare: [], success: [], failure: [], ...parts }) as Operation;
  const concerned: Operation[] = [
    putIn(ENDPOINTS),
    { type: "delete", map: ENDPOINTS, key: "1" },
    putIn(ETCD_ENDPOINTS),
    execute("1"),
    transaction({ success: [putIn("other"), putIn(ENDPOINTS)] }),
    transaction({ failure: [{ type: "delete", map: ENDPOINTS, key: "1" }] }),
    transaction({ compare: [{ type: "revision", map: ENDPOINTS, key: "1", revision: 0 }] }),
  ];
  const others: Operation[] = [
    putIn("other"),
    transaction({ success: [putIn("other")] }),
    { type: "execute", machine: "mine", command: "1" },
    { type: "add", name: ENDPOINTS, by: 1 },
  ];
  expect(concerned.map(concernsOwnNames)).toEqual(concerned.map(() => true));
  expect(others.map(concernsOwnNames)).toEqual(others.map(() => false));
});
