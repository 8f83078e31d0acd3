/** Checks details of watches, leases and members on which etcd's clients rely, in virtual time. */
import { expect, test } from "vitest";
import { clusterService } from "../../src/cluster/etcd/cluster-service.ts";
import type { EtcdError } from "../../src/cluster/etcd/errors.ts";
import type { KeyspaceClient } from "../../src/cluster/etcd/keyspace-client.ts";
import { Leadership } from "../../src/cluster/etcd/leadership.ts";
import { LeaseClock } from "../../src/cluster/etcd/lease-clock.ts";
import { leaseService } from "../../src/cluster/etcd/lease-service.ts";
import { Watches } from "../../src/cluster/etcd/watches.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import { deleteOf, putOf, rangeOf } from "../../src/protocols/service/keyspace/new-requests.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import { simulate, type World } from "../../src/testing/index.ts";
import { asked, at, create, headerOf, streamOf, until } from "./etcd-client.ts";

const progress = { progress_request: {} };

function watching(keyspace: KeyspaceClient, progressMs?: number) {
  const { stream, duplex } = streamOf();
  const { service } = new Watches(keyspace, headerOf, newCounts().etcd, progressMs);
  return { stream, served: asked.stream(service.Watch, duplex) };
}

const hostOf = (world: World, id: number) => (world.member(id) as JoinedMember).state.host;

test("a stream whose client sends no more requests continues until it is cancelled", async () => {
  const world = simulate({ members: 3, seed: 21 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { stream, served } = watching(keyspace);
    let isOver = false;
    const over = served.then(() => (isOver = true));
    stream.ask(create("a"));
    stream.halfClose();
    await until(world, () => stream.responses.length === 1);
    await world.sleep(500);
    await keyspace.execute(putOf("a", "1"));
    await until(world, () => stream.responses.length === 2);
    expect(stream.responses[1]).toMatchObject({ events: [{ kv: { value: "1" } }] });
    expect(isOver).toBe(false);
    stream.end();
    await over;
  });
});

test("watches are rejected with etcd's messages, and do not delay other watches of their stream", async () => {
  const world = simulate({ members: 3, seed: 22 });
  await world.run(async () => {
    const { stream, served } = watching(await at(world, 2));
    stream.ask(progress); // The member answers even without a watch.
    for (const range_end of ["a", "b"]) stream.ask(create("b", { range_end }));
    stream.ask(create("a", { watch_id: 5 }));
    stream.ask(create("a", { watch_id: 5 }));
    stream.ask(create("", { range_end: "\0" }));
    await until(world, () => stream.responses.length === 6);
    const refused = { watch_id: -1, created: true, canceled: true };
    const empty = { ...refused, cancel_reason: "mvcc: watcher range is empty" };
    expect(stream.responses).toMatchObject([
      { header: { revision: 1 }, watch_id: -1 },
      empty,
      empty,
      { watch_id: 5, created: true },
      { ...refused, cancel_reason: "mvcc: duplicate watch ID provided on the WatchStream" },
      { watch_id: 0, created: true },
    ]);
    expect(stream.responses[0]).not.toHaveProperty("created");
    stream.end();
    await served;
  });
});

test("a progress request to a lagging watch is answered once it has sent its changes", async () => {
  const world = simulate({ members: 3, seed: 23 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    for (const value of ["1", "2", "3"]) await keyspace.execute(putOf("a", value));
    const { stream, served } = watching(keyspace);
    stream.isSlow = true;
    stream.ask(create("a", { start_revision: 2 }));
    stream.ask(progress);
    await world.sleep(100);
    stream.hurry();
    await until(world, () => stream.responses.length === 3);
    expect(stream.responses).toMatchObject([
      { created: true },
      { events: [{}, {}, {}] },
      { watch_id: -1, header: { revision: 4 } },
    ]);
    stream.end();
    await served;
  });
});

test("progress includes revisions that changed no key, such as those of grants", async () => {
  const world = simulate({ members: 3, seed: 31 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { stream, served } = watching(keyspace);
    stream.ask(create("a"));
    await until(world, () => stream.responses.length === 1);
    const lock = await world.member(1).mutex("lock").acquire();
    await lock.release();
    const { revision } = await keyspace.ask(rangeOf("a"));
    stream.ask(progress);
    await until(world, () => stream.responses.length === 2);
    expect(stream.responses[1]).toMatchObject({ watch_id: -1, header: { revision } });
    stream.end();
    await served;
  });
});

test("a progress request is answered even if the lagging watch has been canceled", async () => {
  const world = simulate({ members: 3, seed: 30 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    for (const value of ["1", "2", "3"]) await keyspace.execute(putOf("a", value));
    await keyspace.execute({ type: "compact", revision: 4 });
    const { stream, served } = watching(keyspace);
    stream.ask(create("b"));
    stream.ask(create("a", { start_revision: 2 }));
    stream.ask(progress);
    await until(world, () => stream.responses.length === 4);
    expect(stream.responses).toMatchObject([
      { watch_id: 0, created: true },
      { watch_id: 1, created: true },
      { watch_id: 1, canceled: true, compact_revision: 4 },
      { watch_id: -1, header: { revision: 4 } },
    ]);
    stream.end();
    await served;
  });
});

const reported = (responses: readonly Record<string, unknown>[]) =>
  responses.slice(2).map(({ header, ...rest }) => [(header as { revision: number }).revision, rest]);

test("a quiet watch with progress_notify reports its revision at intervals", async () => {
  const world = simulate({ members: 3, seed: 24 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { stream, served } = watching(keyspace, 500);
    stream.ask(create("quiet", { progress_notify: true, watch_id: 1 }));
    stream.ask(create("quiet", { watch_id: 2 }));
    await until(world, () => stream.responses.length === 2);
    await keyspace.execute(putOf("other", "1"));
    await world.sleep(550);
    expect(reported(stream.responses)).toEqual([[2, { watch_id: 1 }]]);
    await world.sleep(500);
    expect(reported(stream.responses)).toEqual([2, 2].map((revision) => [revision, { watch_id: 1 }]));
    await keyspace.execute(putOf("quiet", "1")); // An event reports the revision as well, so no progress is due.
    await world.sleep(500);
    expect(reported(stream.responses).slice(2)).toMatchObject([
      [3, { watch_id: 1, events: [{}] }],
      [3, { watch_id: 2, events: [{}] }],
    ]);
    await world.sleep(500);
    expect(reported(stream.responses).slice(4)).toEqual([[3, { watch_id: 1 }]]);
    const lock = await world.member(1).mutex("lock").acquire(); // It changes no key, but takes revisions.
    await lock.release();
    const { revision } = await keyspace.ask(rangeOf("quiet"));
    expect(revision).toBeGreaterThan(3);
    await world.sleep(500);
    expect(reported(stream.responses).at(-1)).toEqual([revision, { watch_id: 1 }]);
    stream.end();
    await served;
  });
});

test("a quiet watch with progress_notify reports its revision after 1,000 other changes", {
  tags: ["long"],
}, async () => {
  const world = simulate({ members: 3, seed: 31 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { stream, served } = watching(keyspace);
    stream.ask(create("quiet", { progress_notify: true, watch_id: 1 }));
    stream.ask(create("quiet", { watch_id: 2 }));
    await until(world, () => stream.responses.length === 2);
    for (let times = 0; times < 3; times++)
      await Promise.all(Array.from({ length: 500 }, () => keyspace.execute(putOf("other", "2"))));
    await world.sleep(100);
    expect(reported(stream.responses)).toEqual([[1_001, { watch_id: 1 }]]);
    stream.end();
    await served;
  });
});

test("a watch on a quiet range continues from a revision far behind the retained history", {
  tags: ["long"],
}, async () => {
  const world = simulate({ members: 3, seed: 25 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    await keyspace.execute(putOf("quiet/a", "1"));
    const value = "x".repeat(500_000); // It is also the previous value of the next change.
    for (let times = 0; times < 80; times++) await keyspace.execute(putOf(`busy/${times % 10}`, value));
    const { stream, served } = watching(keyspace);
    stream.ask(create("quiet/", { range_end: "quiet0", start_revision: 3, progress_notify: true }));
    stream.ask(create("busy/", { range_end: "busy0", start_revision: 3 }));
    await until(world, () => stream.responses.length === 3);
    await keyspace.execute(deleteOf("quiet/a"));
    await until(world, () => stream.responses.length === 4);
    expect(stream.responses.filter(({ watch_id }) => watch_id === 0)).toMatchObject([
      { created: true },
      { events: [{ type: 1, kv: { key: "quiet/a" } }] },
    ]);
    expect(stream.responses.filter(({ watch_id }) => watch_id === 1)).toMatchObject([
      { created: true },
      { canceled: true, compact_revision: expect.toSatisfy((revision: number) => revision > 3) },
    ]);
    stream.end();
    await served;
  });
});

test("a response larger than 1 MiB is sent in contiguous fragments if the watch requests it", async () => {
  const world = simulate({ members: 3, seed: 26 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    for (const key of ["a", "b", "c", "d", "e"]) await keyspace.execute(putOf(key, key.repeat(500_000)));
    const { stream, served } = watching(keyspace);
    stream.ask(create("a", { range_end: "z", prev_kv: true, fragment: true, watch_id: 1 }));
    stream.ask(create("a", { range_end: "z", prev_kv: true, watch_id: 2 }));
    await until(world, () => stream.responses.length === 2);
    await keyspace.execute(deleteOf("a", "z"));
    await until(world, () => stream.responses.length === 6);
    const parts = stream.responses.slice(2).map(({ watch_id, fragment, events, header }) => {
      const keys = (events as { kv: { key: string } }[]).map(({ kv }) => kv.key).join("");
      return [watch_id, keys, fragment, (header as { revision: number }).revision];
    });
    const first = [
      [1, "ab", true, 7],
      [1, "cd", true, 7],
      [1, "e", false, 7],
    ];
    const second = [[2, "abcde", false, 7]];
    expect([
      [...first, ...second],
      [...second, ...first],
    ]).toContainEqual(parts);
    stream.end();
    await served;
  });
});

/** Follows the leadership at each of these members as a stream does, and records when and why it ends. */
function required(world: World, ids: readonly number[]) {
  return ids.map((id) => {
    const leadership = new Leadership(hostOf(world, id));
    const found = { leadership, endedAt: null as number | null, error: null as EtcdError | null };
    leadership.follow((error) => {
      found.endedAt ??= world.now();
      found.error = error;
    });
    return found;
  });
}

test("streams that require a leader end in about a second at members without a majority, and at no others", async () => {
  const world = simulate({ members: 3, seed: 27 });
  await world.run(async () => {
    for (const id of world.members) await world.member(id).ready();
    const { leader } = hostOf(world, 1);
    for (const alone of [leader as number, ...world.members.filter((id) => id !== leader).slice(0, 1)]) {
      const others = world.members.filter((id) => id !== alone);
      const [cutOff, ...rest] = required(world, [alone, ...others]);
      cutOff?.leadership.require();
      world.partition([alone], others);
      const from = world.now();
      await world.sleep(3_000);
      expect((cutOff?.endedAt ?? Number.POSITIVE_INFINITY) - from).toBeLessThan(2_000);
      expect(cutOff?.error).toMatchObject({ code: 14, details: "etcdserver: no leader" });
      expect(() => cutOff?.leadership.require()).toThrow("etcdserver: no leader");
      expect(rest.map(({ endedAt }) => endedAt)).toEqual([null, null]); // A change of leader does not end them.
      world.heal();
      await world.sleep(3_000);
      cutOff?.leadership.require();
      for (const { leadership } of [cutOff, ...rest].flatMap((each) => each ?? [])) leadership.close();
    }
  });
});

test("leases are listed in order of their end", async () => {
  const world = simulate({ members: 3, seed: 28 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const clock = new LeaseClock(hostOf(world, 1), keyspace);
    const service = leaseService({ keyspace, clock, headerOf });
    const listed = async (): Promise<string[]> => {
      const { leases } = (await asked.call(service.LeaseLeases, {})) as { leases: { ID: string }[] };
      return leases.map(({ ID }) => ID);
    };
    for (const [ID, TTL] of [
      ["7", 30],
      ["9", 5],
      ["11", 10],
      ["2", 20],
    ] as const)
      await asked.call(service.LeaseGrant, { ID, TTL });
    expect(await listed()).toEqual(["9", "11", "2", "7"]);
    await world.sleep(4_000);
    await keyspace.execute({ type: "renew", lease: "9" });
    await asked.call(service.LeaseGrant, { ID: "5", TTL: 6 });
    expect(await listed()).toEqual(["9", "11", "5", "2", "7"]);
    await world.sleep(2_000);
    await keyspace.execute({ type: "renew", lease: "9" });
    expect(await listed()).toEqual(["11", "5", "9", "2", "7"]);
    clock.close();
  });
});

test("a learner is not promoted before it has been started", async () => {
  const world = simulate({ members: 3, seed: 29 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { state, cluster: members } = world.member(1) as JoinedMember;
    const idOf = (member: number) => String(100 + member);
    const cluster = clusterService({ host: state.host, members, keyspace, headerOf, idOf });
    await asked.call(cluster.MemberAdd, { peerURLs: [`http://${world.address(4)}`], isLearner: true });
    const refused = { code: 9, details: "etcdserver: can only promote a learner member which is in sync with leader" };
    await expect(asked.call(cluster.MemberPromote, { ID: "104" })).rejects.toMatchObject(refused);
    await members.settled();
    await expect(asked.call(cluster.MemberPromote, { ID: "104" })).rejects.toMatchObject(refused);
    expect((await members.members()).map(({ role }) => role)).toEqual(["voter", "voter", "voter", "learner"]);
    await world.enter(4);
    await asked.call(cluster.MemberPromote, { ID: "104" });
    await members.settled();
    expect((await members.members()).map(({ role }) => role)).toEqual(["voter", "voter", "voter", "voter"]);
    await expect(asked.call(cluster.MemberPromote, { ID: "104" })).rejects.toMatchObject({
      details: "etcdserver: can only promote a learner member",
    });
  });
});
