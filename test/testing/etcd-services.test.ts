/**
 * Checks etcd's services of members in virtual time, called directly rather than over a connection: watches, locks and
 * elections.
 */
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { clusterService, maintenanceService } from "../../src/cluster/etcd/cluster-service.ts";
import { electionService, lockService } from "../../src/cluster/etcd/lock-service.ts";
import { Watches } from "../../src/cluster/etcd/watches.ts";
import type { ClusterMembers } from "../../src/cluster/services/cluster-api.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import { deleteOf, putOf } from "../../src/protocols/service/keyspace/new-requests.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import { simulate } from "../../src/testing/index.ts";
import { asked, at, create, headerOf, streamOf, until, valuesIn } from "./etcd-client.ts";

test("a watch reports every change once and in order, even to a slow reader", async () => {
  const world = simulate({ members: 3, seed: 7 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const watches = new Watches(keyspace, headerOf, newCounts().etcd);
    const { stream, duplex } = streamOf();
    const served = asked.stream(watches.service.Watch, duplex);
    await keyspace.execute(putOf("a", "before"));
    stream.ask(create("a"));
    stream.ask(create("a", { start_revision: 2, range_end: "c" }));
    await until(world, () => valuesIn(stream.responses, 1).length === 1);
    expect(stream.responses.slice(0, 2)).toMatchObject([
      { watch_id: 0, created: true },
      { watch_id: 1, created: true },
    ]);
    stream.isSlow = true;
    for (const from of [0, 500, 1_000]) {
      const values = Array.from({ length: 500 }, (_, each) => String(from + each));
      await Promise.all(values.map((value) => keyspace.execute(putOf("a", value))));
    }
    stream.hurry();
    await keyspace.execute(putOf("b", "last"));
    const all = Array.from({ length: 1_500 }, (_, each) => `a=${each}`);
    await until(world, () => valuesIn(stream.responses, 1).length === 1_502);
    expect(valuesIn(stream.responses, 1)).toEqual(["a=before", ...all, "b=last"]);
    expect(valuesIn(stream.responses)).toEqual(all);
    stream.ask({ cancel_request: { watch_id: 0 } });
    await until(world, () => stream.responses.at(-1)?.canceled === true);
    stream.ask({ progress_request: {} });
    await until(world, () => stream.responses.at(-1)?.watch_id === -1);
    expect(stream.responses.at(-1)).toMatchObject({ header: { revision: 1_503 } });
    stream.end();
    await served;
  });
});

test("progress is reported only after the changes up to that revision", async () => {
  const world = simulate({ members: 3, seed: 17 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    await keyspace.execute(putOf("a", "1"));
    const { stream, duplex } = streamOf();
    const served = asked.stream(new Watches(keyspace, headerOf, newCounts().etcd).service.Watch, duplex);
    stream.ask(create("a", { start_revision: 2 }));
    const isTold = (): boolean => stream.responses.some(({ watch_id }) => watch_id === -1);
    for (; !isTold(); await world.sleep(1)) stream.ask({ progress_request: {} });
    expect(stream.responses.slice(0, 3)).toMatchObject([
      { watch_id: 0, created: true },
      { watch_id: 0, events: [{ kv: { key: "a", value: "1" } }] },
      { watch_id: -1, header: { revision: 2 } },
    ]);
    stream.end();
    await served;
  });
});

test("long values do not wait for a slow watch, and it misses none", async () => {
  const world = simulate({ members: 3, seed: 13 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const counts = newCounts().etcd;
    const { stream, duplex } = streamOf();
    const served = asked.stream(new Watches(keyspace, headerOf, counts).service.Watch, duplex);
    for (const key of ["a", "a"]) stream.ask(create(key));
    await until(world, () => stream.responses.length === 2);
    expect(counts.watches).toBe(2);
    stream.isSlow = true;
    const values = Array.from({ length: 10 }, (_, each) => String(each).repeat(200_000));
    for (const value of values) await keyspace.execute(putOf("a", value));
    stream.hurry();
    for (const watch of [0, 1]) {
      await until(world, () => valuesIn(stream.responses, watch).length === values.length);
      expect(valuesIn(stream.responses, watch).map((each) => each.slice(0, 4))).toEqual(
        values.map((value) => `a=${value.slice(0, 2)}`),
      );
    }
    stream.end();
    await served;
    expect(counts.watches).toBe(0);
  });
});

test("a watch from a compacted revision is cancelled with the first available revision", async () => {
  const world = simulate({ members: 3, seed: 8 });
  await world.run(async () => {
    const keyspace = await at(world, 2);
    for (const value of ["1", "2", "3"]) await keyspace.execute(putOf("a", value));
    await keyspace.execute({ type: "compact", revision: 3 });
    const { stream, duplex } = streamOf();
    const served = asked.stream(new Watches(keyspace, headerOf, newCounts().etcd).service.Watch, duplex);
    stream.ask(create("a", { start_revision: 2 }));
    await until(world, () => stream.responses.length === 2);
    expect(stream.responses).toMatchObject([{ created: true }, { canceled: true, compact_revision: 3 }]);
    stream.end();
    await served;
  });
});

test("a lock goes to the first waiter, and skips one that has given up", async () => {
  const world = simulate({ members: 3, seed: 9 });
  await world.run(async () => {
    const [one, two] = [await at(world, 1), await at(world, 2)];
    const [first, second] = [lockService(one, headerOf), lockService(two, headerOf)];
    for (const lease of ["16", "17", "18"]) await one.execute({ type: "grant", lease, ttl: 600 });
    const lock = { name: "l", lease: "16" };
    expect(await asked.call(first.Lock, lock)).toMatchObject({ key: "l/10" });
    expect(await asked.call(second.Lock, lock)).toMatchObject({ key: "l/10" }); // The session already holds the lock.
    const order: string[] = [];
    const controller = new AbortController();
    const waits = asked
      .call(second.Lock, { name: "l", lease: "17" }, controller.signal)
      .catch(() => order.push("gave up"));
    await world.sleep(100);
    const next = asked.call(first.Lock, { name: "l", lease: "18" }).then(() => order.push("18"));
    await world.sleep(500);
    expect(order).toEqual([]);
    controller.abort();
    await waits;
    await world.sleep(500);
    expect(order).toEqual(["gave up"]);
    await asked.call(second.Unlock, { key: "l/10" });
    await next;
    expect(order).toEqual(["gave up", "18"]);
  });
});

test("a lock is not acquired with a deleted key", async () => {
  const world = simulate({ members: 3, seed: 10 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    const { Lock } = lockService(keyspace, headerOf);
    for (const lease of ["16", "17"]) await keyspace.execute({ type: "grant", lease, ttl: 600 });
    await asked.call(Lock, { name: "l", lease: "16" });
    const waits = asked.call(Lock, { name: "l", lease: "17" });
    const refused = expect(waits).rejects.toThrow("mutex: session is expired");
    await world.sleep(200);
    await keyspace.execute({ type: "revoke", lease: "17" });
    await refused;
    await expect(asked.call(Lock, { name: "l", lease: "99" })).rejects.toThrow("requested lease not found");
  });
});

test("an election has one leader, which proclaims values, and observers receive them", async () => {
  const world = simulate({ members: 3, seed: 11 });
  await world.run(async () => {
    const [one, two] = [await at(world, 1), await at(world, 2)];
    const [first, second] = [electionService(one, headerOf), electionService(two, headerOf)];
    await expect(asked.call(first.Leader, { name: "e" })).rejects.toThrow("election: no leader");
    const { stream, duplex } = streamOf();
    const observed = asked.stream(second.Observe, {
      ...duplex,
      requests: Readable.from([{ name: "e" }]),
    });
    const leads = (await asked.call(first.Campaign, { name: "e", lease: "0", value: "one" })) as { leader: object };
    const { leader } = leads;
    const isNext = asked.call(second.Campaign, { name: "e", lease: "0", value: "two" });
    await asked.call(first.Proclaim, { leader, value: "still one" });
    expect(await asked.call(second.Leader, { name: "e" })).toMatchObject({ kv: { value: "still one" } });
    await world.sleep(200);
    await asked.call(second.Resign, { leader });
    const { leader: other } = (await isNext) as { leader: { key: string } };
    await expect(asked.call(first.Proclaim, { leader, value: "once more" })).rejects.toThrow("election: not leader");
    await two.execute(deleteOf(other.key));
    await world.sleep(200);
    stream.end();
    await observed;
    const told = stream.responses.map(({ kv }) => (kv as { value: string }).value);
    expect(told.at(-1)).toBe("two");
    expect(told).toContain("still one");
  });
});

test("members are listed, added, removed and made leader by the ids that etcd's clients know", async () => {
  const world = simulate({ members: 3, seed: 12 });
  await world.run(async () => {
    const keyspace = await at(world, 1);
    for (const id of world.members) await world.member(id).ready();
    const partsAt = (id: number) => {
      const { state, cluster: members } = world.member(id) as JoinedMember;
      return { host: state.host, members, keyspace, headerOf, idOf: (member: number) => String(100 + member) };
    };
    const cluster = clusterService(partsAt(1));
    const names = (response: unknown): string[] =>
      (response as { members: { ID: string; name: string; isLearner: boolean }[] }).members.map(
        ({ ID, name, isLearner }) => `${ID} ${name} ${isLearner}`,
      );
    const three = ["101 1 false", "102 2 false", "103 3 false"];
    expect(names(await asked.call(cluster.MemberList, {}))).toEqual(three);
    const newcomer = { peerURLs: ["http://10.0.0.9:7100"], isLearner: true };
    const added = await asked.call(cluster.MemberAdd, newcomer);
    expect(added).toMatchObject({ member: { ID: "104", peerURLs: ["http://10.0.0.9:7100"] } });
    expect(names(added)).toEqual([...three, "104 4 true"]);
    expect(names(await asked.call(cluster.MemberRemove, { ID: "104" }))).toEqual(three);
    const other = { peerURLs: ["http://10.0.0.10:7100"], isLearner: true };
    await world.member(1).cluster.settled();
    expect(await asked.call(cluster.MemberAdd, other)).toMatchObject({ member: { ID: "105" } });
    await expect(asked.call(cluster.MemberRemove, { ID: "104" })).rejects.toThrow("etcdserver: member not found");
    await expect(asked.call(cluster.MemberPromote, { ID: "101" })).rejects.toThrow(
      /can only promote a learner member$/,
    );
    for (const peerURLs of [[], ["10.0.0.9:7100"], ["http://a"], ["http://a:1", "http://b:1"]])
      await expect(asked.call(cluster.MemberAdd, { peerURLs, isLearner: false })).rejects.toThrow("member URLs");

    const leader = (): number => partsAt(1).host.leader as number;
    const [before] = [leader()];
    const next = world.members.find((id) => id !== before) as number;
    const { MoveLeader } = maintenanceService(partsAt(before));
    await expect(asked.call(MoveLeader, { targetID: "9" })).rejects.toThrow("bad leader transferee");
    await asked.call(MoveLeader, { targetID: String(100 + next) });
    await until(world, () => leader() === next);
    await expect(asked.call(MoveLeader, { targetID: "101" })).rejects.toThrow("etcdserver: not leader");
    const status = await asked.call(maintenanceService(partsAt(1)).Status, {});
    expect(status).toMatchObject({ version: "3.4.31", leader: String(100 + next), dbSize: 64, isLearner: false });
    for (const role of ["learner", "joining"] as const) {
      const list = [{ id: 1, address: "10.0.0.1:7100", role }];
      const members = { members: () => Promise.resolve(list) } as unknown as ClusterMembers;
      const { Status } = maintenanceService({ ...partsAt(1), members });
      expect(await asked.call(Status, {})).toMatchObject({ isLearner: true });
    }
  });
});
