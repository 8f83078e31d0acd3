import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OneReplica, oneReplica } from "../../../../test/protocols/service/one-replica.ts";
import { stage } from "../../../../test/protocols/service/stage.ts";
import { keysOf } from "../keyspace/table.ts";
import { utf8BytesOf } from "../keyspace/text-size.ts";
import type { KeyEvent } from "../keyspace/vocabulary.ts";
import {
  ENDPOINTS,
  FIRST_CLIENT,
  MAX_OPERATION_BYTES,
  MAX_PROPOSAL_BYTES,
  MAX_VALUE_BYTES,
  MAX_WHOLE_BYTES,
  type Operation,
  PART_CHARS,
  type Result,
  type SessionOperation,
} from "./operations.ts";
import { sessionOf } from "./sessions.ts";
import { sizeOf } from "./state.ts";
import { dataProblem } from "./state-shape.ts";

const put = (key: string, value: string): Operation => ({ type: "put", map: "m", key, value, isLeased: false });

/** Splits an operation into this many parts. */
function partsOf(operation: object, count: number): SessionOperation[] {
  const text = JSON.stringify(operation);
  const chars = Math.ceil(text.length / count);
  return Array.from({ length: count }, (_part, at) => ({
    type: "part",
    number: at + 1,
    isLast: at + 1 === count,
    text: text.slice(at * chars, (at + 1) * chars),
  }));
}

/** Applies the parts. The replica treats a member's own operations like any others. */
const applyAll = ({ apply }: OneReplica, member: number, parts: readonly SessionOperation[]): Result | undefined =>
  parts.map((part) => apply(member, part as never)).at(-1);

describe("parts of an operation", () => {
  it("are applied as one with the last, and count toward the state until then", () => {
    const replica = oneReplica();
    replica.open(0);
    const parts = partsOf(put("a", "x".repeat(1_000)), 3);
    expect(applyAll(replica, 0, parts.slice(0, 2))).toEqual({ type: "done" });
    expect(keysOf(replica.data.keyspace.keys)).toEqual([]);
    expect(replica.data.bytes).toBeGreaterThan(600);
    expect(dataProblem(JSON.parse(JSON.stringify(replica.data)))).toBeNull();
    expect(applyAll(replica, 0, parts.slice(2))).toEqual({ type: "stored", previous: null });
    const other = oneReplica();
    other.open(0);
    other.apply(0, put("a", "x".repeat(1_000)));
    expect(replica.data.bytes).toBe(0);
    expect(replica.data.keyspace).toEqual(other.data.keyspace);
  });

  it("are dropped with the session, and when it begins another operation", () => {
    const replica = oneReplica();
    replica.open(0);
    const first = partsOf(put("a", "x".repeat(1_000)), 3);
    applyAll(replica, 0, first.slice(0, 2));
    replica.end(0);
    expect(replica.data.bytes).toBe(0);
    replica.open(0);
    expect(applyAll(replica, 0, first.slice(2))).toMatchObject({ type: "refused", code: "bad-operation" });
    applyAll(replica, 0, first.slice(0, 2));
    expect(applyAll(replica, 0, partsOf(put("b", "1"), 2))).toMatchObject({ type: "stored" });
    expect(applyAll(replica, 0, first.slice(2))).toMatchObject({ type: "refused", code: "bad-operation" });
    expect(keysOf(replica.data.keyspace.keys)).toEqual(["map/m/b"]);
  });

  it("are refused with the reason of the first refusal if they do not fit", () => {
    const replica = oneReplica({ maxBytes: 5_000 });
    replica.open(0);
    expect(applyAll(replica, 0, partsOf(put("a", "x".repeat(9_000)), 10))).toMatchObject({ code: "full" });
    expect(replica.data.bytes).toBe(0);
    expect(sessionOf(replica.data, 0)?.staged).toBeNull();
    const roomy = oneReplica({ maxBytes: 10 * MAX_WHOLE_BYTES });
    roomy.open(0);
    expect(applyAll(roomy, 0, partsOf(put("a", "x".repeat(MAX_WHOLE_BYTES)), 120))).toMatchObject({
      code: "too-large",
    });
    expect(roomy.data.bytes).toBe(0);
  });

  it("have extra space, so that a value can be replaced in a full state", () => {
    const replica = oneReplica({ maxBytes: 200_000 });
    replica.open(0);
    replica.open(1);
    applyAll(replica, 0, partsOf(put("a", "x".repeat(99_000)), 10));
    applyAll(replica, 0, partsOf(put("b", "x".repeat(99_000)), 10));
    const parts = partsOf(put("c", "z".repeat(2_150_000)), 110);
    const many = parts.slice(0, 100).map((part) => replica.apply(1, part as never).type);
    const result = applyAll(replica, 0, partsOf(put("a", "y".repeat(50_000)), 10));
    const more = parts.slice(100).map((part) => replica.apply(1, part as never).type);
    expect(sizeOf(replica.data)).toBeLessThanOrEqual(200_000);
    expect([result?.type, many.at(-1), more.at(-1)]).toEqual(["stored", "done", "refused"]);
  });

  it("cannot hide a forbidden operation of a client, or an operation without a value", () => {
    const replica = oneReplica();
    const client = FIRST_CLIENT + 1;
    replica.open(0);
    replica.open(client);
    const endpoint = { ...put("1", "x"), map: ENDPOINTS };
    const within = { type: "transaction", compare: [], success: [endpoint], failure: [] };
    for (const hidden of [endpoint, within, { type: "removeMember", member: 1 }])
      expect(applyAll(replica, client, partsOf(hidden, 2))).toMatchObject({ code: "bad-operation" });
    const parts = partsOf(put("a", "x"), 2);
    for (const hidden of [
      parts[0] as object,
      { type: "begin", ttlMs: 1, version: 1 },
      { type: "close", ifIdle: false },
      [1],
    ])
      expect(applyAll(replica, 0, partsOf(hidden, 2))).toMatchObject({ code: "bad-operation" });
    expect(applyAll(replica, 0, partsOf(endpoint, 2))).toMatchObject({ type: "stored" });
    expect(replica.data.sessions).toHaveLength(2);
  });

  it("have the effect of the whole operation for any split, with repetitions and interruptions at any place", () => {
    const run = fc.record({
      value: fc.string({ unit: "binary", maxLength: 200 }),
      count: fc.integer({ min: 2, max: 9 }),
      cutOff: fc.integer({ min: 0, max: 8 }),
    });
    fc.assert(
      fc.property(fc.array(run, { maxLength: 6 }), (runs) => {
        const [replica, plain] = [oneReplica(), oneReplica()];
        for (const each of [replica, plain]) each.open(0);
        for (const [at, { value, count, cutOff }] of runs.entries()) {
          const operation = put(`k${at % 3}`, value);
          const parts = partsOf(operation, count);
          applyAll(replica, 0, parts.slice(0, Math.min(cutOff, count - 1)));
          expect(applyAll(replica, 0, parts)).toEqual(plain.apply(0, operation));
        }
        expect(replica.data.keyspace).toEqual(plain.data.keyspace);
        expect(replica.data.bytes).toBe(plain.data.bytes);
      }),
      { numRuns: 30 },
    );
  });
});

const filled = (chars: number, unit: string): string => unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars);
const shown = (chars: number, unit: string) => `${chars} of ${unit}`;

/** Escapes, wide characters, and halves of them where the text is split. */
const units = ["x", '"', "\\\n", "é", "世", "a🦊"];
const edges = [MAX_OPERATION_BYTES - 100, PART_CHARS, 3 * PART_CHARS, MAX_PROPOSAL_BYTES, 200_000];

describe("a large operation of a member", () => {
  it("of any size and characters around each limit is applied once, and read back unchanged", () => {
    const { submit, query, sim, leader } = stage();
    const other = (leader() + 1) % 3;
    fc.assert(
      fc.property(
        fc.constantFrom(...edges),
        fc.integer({ min: -60, max: 60 }),
        fc.constantFrom(...units),
        (...drawn) => {
          const [edge, off, unit] = drawn;
          const value = filled(edge + off, unit);
          expect(submit(other, put("a", value)), shown(edge + off, unit)).toMatchObject({ type: "done" });
          const read = query(leader(), { type: "get", map: "m", key: "a" }) as { answer: { entry: { value: string } } };
          expect(read.answer.entry.value === value, shown(edge + off, unit)).toBe(true);
        },
      ),
      { numRuns: 12 },
    );
    expect(sim.verdict()).toEqual([]);
  });

  it("may be as large as any value, with any escapes, while each log entry stays within its bounds", () => {
    const commands: number[] = [];
    const { submit, query, sim, leader } = stage();
    for (const unit of ["x", '"']) {
      const value = filled(MAX_VALUE_BYTES, unit);
      expect(submit(leader(), put("a", value))).toMatchObject({ type: "done" });
      expect(query((leader() + 1) % 3, { type: "get", map: "m", key: "a" })).toMatchObject({ answer: { entry: {} } });
    }
    for (const entry of sim.world.state(leader()).log.log.entries)
      if (entry.type === "command") commands.push(utf8BytesOf(entry.command.operation));
    expect(commands.length).toBeGreaterThan(20);
    expect(Math.max(...commands)).toBeLessThanOrEqual(MAX_PROPOSAL_BYTES);
  });

  it("is applied once even if leaders change and messages are lost half-way", () => {
    for (const seed of [1, 2, 3]) {
      const { ask, answer, run, sim, leader, events } = stage({ seed });
      const old = leader();
      const member = (old + 1) % 3;
      const value = filled(300_000, "x");
      const request = ask(member, put("a", value));
      run(10 + 3 * seed);
      sim.crash(old);
      run(2_500);
      sim.start(old);
      run(3_000);
      expect(answer(member, request)).toMatchObject({ type: "done", result: { previous: null } });
      const told = events.filter(
        ({ node, type, events: of }) =>
          node === member && type === "keysChanged" && (of as KeyEvent[]).some(({ kv }) => kv.value === value),
      );
      expect(told).toHaveLength(1);
      expect(sim.verdict()).toEqual([]);
    }
  });

  it("leaves nothing if its session ends half-way, and is answered as not applied", () => {
    const quick = { leaseMs: 400, renewMs: 100, sweepMs: 100, retryMs: 100, idleMs: 1_000 };
    const { ask, answer, run, sim, leader, query } = stage({ service: { session: quick } });
    const member = (leader() + 1) % 3;
    const request = ask(member, put("a", filled(900_000, "x")));
    const staged = (): number => sessionOf(sim.world.state(leader()).replica.data, member)?.staged?.parts ?? 0;
    for (let ms = 0; staged() === 0 && ms < 1_000; ms++) run(1);
    expect(staged()).toBeGreaterThan(0);
    sim.partition([[member]]);
    run(2_000);
    expect(sim.world.state(leader()).replica.data.bytes).toBe(0);
    sim.heal();
    run(3_000);
    // Parts that were not proposed are proposed in the next session, but the proposed ones ended with this session.
    const end = answer(member, request) as { type: string; code?: string };
    if (end.type === "refused") expect(end.code).toBe("session-expired");
    const { answer: found } = query(member, { type: "get", map: "m", key: "a" }) as { answer: { entry: unknown } };
    expect(found.entry === null).toBe(end.type === "refused");
    expect(sim.verdict()).toEqual([]);
  });

  it("continues after a snapshot taken half-way, at a member restarted from it", () => {
    const { ask, answer, run, sim, leader, query } = stage({
      service: { replica: { snapshotChars: 50_000 }, log: { keptEntries: 0 } },
    });
    const away = (leader() + 1) % 3;
    const member = (leader() + 2) % 3;
    const staged = (node: number): number => sessionOf(sim.world.state(node).replica.data, member)?.staged?.parts ?? 0;
    sim.crash(away);
    const value = filled(450_000, "é");
    const request = ask(member, put("a", value));
    for (let ms = 0; staged(leader()) < 12 && ms < 5_000; ms++) run(1);
    expect(sim.world.state(leader()).log.snapshot.index).toBeGreaterThan(0);
    sim.start(away);
    for (let ms = 0; staged(away) === 0 && ms < 5_000; ms++) run(1);
    expect(staged(away)).toBeGreaterThan(0);
    run(3_000);
    expect(answer(member, request)).toMatchObject({ type: "done" });
    expect(query(away, { type: "get", map: "m", key: "a" })).toMatchObject({ answer: { entry: { value } } });
    expect(sim.world.state(away).replica.data).toEqual(sim.world.state(leader()).replica.data);
    expect(sim.verdict()).toEqual([]);
  });
});

describe("the answer", () => {
  it("to a transaction is bounded, even if it reads a large value many times", () => {
    const replica = oneReplica({ maxBytes: 8 * MAX_VALUE_BYTES });
    replica.open(0);
    replica.apply(0, put("a", filled(MAX_VALUE_BYTES, "x")));
    const reads = (count: number): Operation => ({
      type: "transaction",
      compare: [],
      success: Array.from({ length: count }, () => ({ type: "get", map: "m", key: "a" })),
      failure: [],
    });
    expect(replica.apply(0, reads(15))).toMatchObject({ type: "transaction" });
    expect(replica.apply(0, reads(16))).toMatchObject({ type: "refused", code: "too-large" });
  });

  it("to a query for changes is limited to about one large change", () => {
    const replica = oneReplica({ maxBytes: 8 * MAX_VALUE_BYTES, maxHistoryBytes: 2.5 * MAX_VALUE_BYTES });
    replica.open(0);
    for (const key of ["a", "b", "c"]) replica.apply(0, put(key, filled(MAX_VALUE_BYTES, "x")));
    const { revision } = replica.data.keyspace;
    expect(replica.ask({ type: "changes", map: "m", after: revision - 3 })).toMatchObject({ code: "compacted" });
    const answers = [2, 1].map((back) => replica.ask({ type: "changes", map: "m", after: revision - back }));
    expect(answers).toMatchObject([
      { changes: [{ key: "b" }], isMore: true },
      { changes: [{ key: "c" }], isMore: false },
    ]);
  });
});
