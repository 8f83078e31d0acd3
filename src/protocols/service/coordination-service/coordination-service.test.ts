import { describe, expect, it } from "vitest";
import { stage } from "../../../../test/protocols/service/stage.ts";
import type { Operation } from "./operations.ts";

const put = (key: string, value: string): Operation => ({ type: "put", map: "m", key, value, isLeased: false });
const add: Operation = { type: "add", name: "c", by: 1 };
const acquire = (wait: number): Operation => ({
  type: "acquire",
  name: "l",
  wait,
  mode: "exclusive",
  permits: 1,
  capacity: 1,
  note: "",
});
const count = { type: "count", name: "c" } as const;
const holders = { type: "holders", name: "l" } as const;
const sessions = { type: "sessions" } as const;

const quick = { leaseMs: 400, renewMs: 100, sweepMs: 100, retryMs: 100, idleMs: 1_000 };

describe("a member", () => {
  it("opens its session with the first operation, and reads the writes of any other member", () => {
    const { submit, query, leader } = stage();
    const other = (leader() + 1) % 3;
    expect(submit(other, put("a", "1"))).toEqual({
      type: "done",
      session: 1,
      revision: 2,
      result: { type: "stored", previous: null },
    });
    for (const node of [0, 1, 2])
      expect(query(node, { type: "get", map: "m", key: "a" })).toMatchObject({ answer: { entry: { value: "1" } } });
  });

  it("has many operations in progress, which are applied in order, in few log entries", () => {
    const { ask, answer, run, sim, leader, query } = stage();
    const other = (leader() + 1) % 3;
    const before = sim.world.state(other).log.commitIndex;
    const requests = Array.from({ length: 256 }, () => ask(other, add));
    run(100);
    expect(requests.map((request) => answer(other, request))).toMatchObject(
      requests.map((_request, at) => ({ type: "done", result: { type: "counted", value: at + 1 } })),
    );
    // Four are proposed one at a time, and then all that arrived in between are proposed together.
    expect(sim.world.state(other).log.commitIndex - before).toBe(5);
    expect(query(leader(), count)).toMatchObject({ answer: { value: 256 } });
    expect(sim.verdict()).toEqual([]);
  });

  it("queues requests while it is corked, and then sends them together: one log entry, one read", () => {
    const { ask, answer, run, sim, leader, submit } = stage();
    const other = (leader() + 1) % 3;
    submit(other, add);
    const before = sim.world.state(other);
    const [index, read] = [before.log.commitIndex, before.session.reads.read];
    const tell = (body: { type: "cork" } | { type: "uncork" }): void => sim.command(other, { type: "session", body });
    tell({ type: "cork" });
    const requests = Array.from({ length: 256 }, () => ask(other, add));
    for (let request = 1_001; request <= 1_050; request++)
      sim.command(other, { type: "session", body: { type: "query", request, query: count } });
    run(20);
    expect(sim.world.state(other).log.commitIndex).toBe(index);
    tell({ type: "uncork" });
    run(20);
    expect(requests.map((request) => answer(other, request))).toMatchObject(
      requests.map((_request, at) => ({ type: "done", result: { type: "counted", value: at + 2 } })),
    );
    expect(answer(other, 1_050)).toMatchObject({ type: "read" });
    const { log, session } = sim.world.state(other);
    expect([log.commitIndex - index, session.reads.read - read]).toEqual([1, 1]);
  });

  it("refuses operations beyond its bounds, and ones that are too large", () => {
    const { ask, answer, submit } = stage({ service: { session: { maxPending: 3 } } });
    const requests = Array.from({ length: 4 }, () => ask(0, add));
    expect(answer(0, requests[3] ?? 0)).toMatchObject({ type: "refused", code: "overloaded" });
    const large = put("a", "x".repeat(800_000)) as Operation & { type: "put" };
    const larger: Operation = { type: "transaction", compare: [], success: [large, large, large], failure: [] };
    expect(submit(1, larger)).toMatchObject({ type: "refused", code: "too-large" });
    expect(submit(1, put("a", '"'.repeat(32_000)))).toMatchObject({ type: "done" });
  });

  it("serves all waiting reads with one round of messages", () => {
    const { sim, leader, run, answer } = stage();
    const other = (leader() + 1) % 3;
    for (let request = 1; request <= 50; request++)
      sim.command(other, { type: "session", body: { type: "query", request, query: count } });
    const before = sim.world.state(other).session.reads.read;
    run(100);
    expect(answer(other, 50)).toMatchObject({ type: "read", answer: { value: 0 } });
    // One round for the first read, and one for all others.
    expect(sim.world.state(other).session.reads.read - before).toBe(1);
  });

  it("closes a session that it does not use, and writes nothing more", () => {
    const { submit, run, query, sim } = stage({ service: { session: quick } });
    submit(0, add);
    run(4_000);
    expect(query(1, sessions)).toMatchObject({ answer: { sessions: [] } });
    const { index } = sim.world.state(1).replica;
    run(10_000);
    expect(sim.world.state(1).replica.index).toBe(index);
    expect(submit(0, add)).toMatchObject({ type: "done", result: { value: 2 } });
  });

  it("keeps an idle session that holds something", () => {
    const { submit, run, query, events } = stage({ service: { session: quick } });
    submit(0, acquire(1));
    run(10_000);
    expect(query(1, holders)).toMatchObject({ answer: { holders: [{ member: 0, token: 2 }] } });
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
  });

  it("that departs releases its grants at once", () => {
    const { submit, run, query, sim } = stage();
    submit(0, acquire(1));
    sim.command(0, { type: "session", body: { type: "depart" } });
    run(100);
    expect(query(1, holders)).toMatchObject({ answer: { holders: [] } });
  });
});

describe("a session", () => {
  it("of a member that has crashed expires, and the next in the queue is granted", () => {
    const { submit, sim, run, events, leader } = stage({ service: { session: quick } });
    const [first, second] = [(leader() + 1) % 3, (leader() + 2) % 3] as const;
    submit(first, acquire(1));
    submit(second, acquire(1));
    sim.crash(first);
    run(1_200);
    expect(
      events.filter(({ node, type }) => node === second && (type === "granted" || type === "ended")),
    ).toMatchObject([
      { type: "granted", wait: 1, token: 2 },
      { type: "ended", member: first, reason: "expired" },
      { type: "granted", wait: 1, token: 3 },
    ]);
  });

  it("of a restarted member ends at once", () => {
    const { submit, sim, run, events, leader } = stage();
    const [first, second] = [(leader() + 1) % 3, (leader() + 2) % 3] as const;
    submit(first, acquire(1));
    submit(second, acquire(1));
    sim.crash(first);
    sim.start(first);
    run(300);
    expect(events).toContainEqual(expect.objectContaining({ node: second, type: "ended", reason: "replaced" }));
    expect(events).toContainEqual(expect.objectContaining({ node: second, type: "granted", token: 3 }));
  });

  it("that is cut off is lost to its member before another one is granted its locks", () => {
    const { submit, sim, run, events, leader } = stage();
    const [first, second] = [leader(), (leader() + 1) % 3] as const;
    submit(first, acquire(1));
    submit(second, acquire(1));
    sim.partition([[first]]);
    run(8_000);
    const lostAt = events.find(({ node, type }) => node === first && type === "lost")?.at ?? 0;
    const grantedAt = events.find(
      ({ node, type, session }) => node === second && type === "granted" && session === 2,
    )?.at;
    expect(lostAt).toBeGreaterThan(0);
    expect(grantedAt).toBeGreaterThan(lostAt);
    sim.heal();
    run(2_000);
    expect(sim.verdict()).toEqual([]);
  });

  it("outlives a change of leaders, as do its operations", () => {
    const { submit, sim, ask, run, answer, events, leader } = stage();
    const old = leader();
    const member = (old + 1) % 3;
    submit(member, acquire(1));
    sim.crash(old);
    const requests = Array.from({ length: 20 }, () => ask(member, add));
    run(3_000);
    expect(answer(member, requests.at(-1) ?? 0)).toMatchObject({ type: "done", result: { value: 20 } });
    expect(events.filter(({ type, node }) => type === "lost" && node !== old)).toEqual([]);
  });

  it("that is lost answers proposed operations once the log settles them, and requests the rest again", () => {
    const { submit, sim, ask, run, answer, leader, query } = stage({ service: { session: quick } });
    const member = (leader() + 1) % 3;
    submit(member, acquire(1));
    sim.partition([[member]]);
    const put = ask(member, add);
    run(2_000);
    expect(answer(member, put)).toBe(undefined);
    sim.heal();
    run(2_000);
    expect(answer(member, put)).toMatchObject({ type: "refused", code: "session-expired" });
    expect(query(member, count)).toMatchObject({ answer: { value: 0 } });
    expect(submit(member, add)).toMatchObject({ type: "done" });
  });
});

describe("snapshots", () => {
  it("bring a disconnected member up to date, including sessions, replies and changes", () => {
    const { submit, sim, run, query, events, leader } = stage({
      service: { replica: { snapshotChars: 500 }, log: { keptEntries: 0 } },
    });
    const away = (leader() + 1) % 3;
    submit(leader(), acquire(1));
    sim.crash(away);
    for (let at = 0; at < 30; at++) submit(leader(), put(`k${at % 4}`, `v${at}`));
    sim.start(away);
    run(1_000);
    expect(events.filter(({ node, type }) => node === away && type === "restored").length).toBeGreaterThan(0);
    expect(sim.world.state(away).replica.data).toEqual(sim.world.state(leader()).replica.data);
    expect(query(away, { type: "changes", map: "m", after: 30 })).toMatchObject({
      answer: { changes: [{ value: "v28" }, { value: "v29" }] },
    });
    expect(query(away, holders)).toMatchObject({ answer: { holders: [{ member: leader() }] } });
  });
});
