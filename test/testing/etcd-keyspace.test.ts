/** Checks the basis of etcd's API in virtual time: commands, reads, large responses, and leases that expire. */
import { expect, test } from "vitest";
import { KeyspaceClient } from "../../src/cluster/etcd/keyspace-client.ts";
import type { JoinedMember } from "../../src/cluster/services/joined-member.ts";
import { putOf, rangeOf, txnOf } from "../../src/protocols/service/keyspace/new-requests.ts";
import type { KeyspaceChange } from "../../src/protocols/service/keyspace/vocabulary.ts";
import { simulate, type World } from "../../src/testing/index.ts";

const of = (world: World, id: number): KeyspaceClient =>
  new KeyspaceClient((world.member(id) as JoinedMember).state.host);

async function ready(world: World): Promise<void> {
  for (const id of world.members) await world.member(id).ready();
}

test("other members read a put, and each reports it once", async () => {
  const world = simulate({ members: 3, seed: 3 });
  await world.run(async () => {
    await ready(world);
    const keyspaces = world.members.map((id) => of(world, id));
    const told: (KeyspaceChange | null)[][] = keyspaces.map((keyspace) => {
      const changes: (KeyspaceChange | null)[] = [];
      keyspace.listen((change) => changes.push(change));
      return changes;
    });
    for (const [at, keyspace] of keyspaces.entries()) {
      expect(await keyspace.execute(putOf("a", String(at)))).toMatchObject({ revision: at + 2 });
      for (const other of keyspaces)
        expect(await other.ask(rangeOf("a"))).toMatchObject({ revision: at + 2, kvs: [{ value: String(at) }] });
    }
    for (const changes of told) expect(changes.map((change) => change?.revision)).toEqual([2, 3, 4]);
    await expect(keyspaces[0]?.execute(putOf("a", "", { lease: "9" }))).rejects.toMatchObject({
      code: 5,
      details: "etcdserver: requested lease not found",
    });
  });
});

test("a value that is not JSON spoils only its own entry, which a put repairs", async () => {
  const world = simulate({ members: 3, seed: 6 });
  await world.run(async () => {
    await ready(world);
    const settings = world.member(2).map<number>("settings");
    const changes = settings.watch();
    await settings.put("a", 1);
    await of(world, 1).execute(putOf("map/settings/b", "hello"));
    await settings.put("c", 3);
    expect((await settings.range()).entries).toMatchObject([
      { key: "a", value: 1 },
      { key: "c", value: 3 },
    ]);
    await expect(settings.get("b")).rejects.toThrow(
      'expected the value of "b" in the map "settings" written by another program to be JSON, or bytes in base64, got "hello"',
    );
    for (const change of [
      { type: "put", key: "a" },
      { type: "delete", key: "b" },
      { type: "put", key: "c" },
    ])
      expect(await changes.next()).toMatchObject({ value: change });
    await settings.put("b", 2);
    expect(await settings.get("b")).toBe(2);
  });
});

test("maps and counters are keys, which both sides write, read and watch", async () => {
  const world = simulate({ members: 3, seed: 6 });
  await world.run(async () => {
    await ready(world);
    const keyspace = of(world, 1);
    const member = world.member(2);
    const settings = member.map<unknown>("settings");
    const changes = settings.watch();
    const heard: string[] = [];
    keyspace.listen((change) => heard.push(...(change?.events ?? []).map(({ kv }) => `${kv.key}=${kv.value}`)));
    await keyspace.execute(putOf("map/settings/x", "1"));
    const revision = await settings.put("ö", { a: true });
    await member.map("a/b").put("c/d", "e", { leased: true });
    await member.counter("n").add(5);
    expect(await changes.next()).toMatchObject({ value: { type: "put", key: "x", value: 1, revision: revision - 1 } });
    expect(await changes.next()).toMatchObject({ value: { type: "put", key: "ö", value: { a: true }, revision } });
    const { kvs } = await keyspace.ask(rangeOf("\0", "\0"));
    expect(kvs.map(({ key, value }) => `${key}=${value}`)).toEqual([
      "counter/n=5",
      'map/a%2Fb/c/d="e"',
      "map/settings/x=1",
      'map/settings/\xc3\xb6={"a":true}',
    ]);
    expect(heard.toSorted()).toEqual(kvs.map(({ key, value }) => `${key}=${value}`));
    expect(BigInt(kvs[1]?.lease ?? 0)).toBeGreaterThan(2n ** 62n);
    await member.leave();
    expect(await keyspace.ask(rangeOf("map/a%2Fb/", "map/a%2Fb0"))).toMatchObject({ count: 0 });
    await keyspace.execute({ type: "delete", key: "map/settings/", end: "map/settings0", prev: false });
    expect(await world.member(3).map("settings").range()).toMatchObject({ entries: [] });
  });
});

test("values of 1 MiB minus the overhead are stored and read in a transaction; longer ones are rejected", async () => {
  const world = simulate({ members: 3, seed: 4 });
  await world.run(async () => {
    await ready(world);
    const keyspace = of(world, 2);
    const value = "v".repeat(1_000_000);
    await keyspace.execute(putOf("a", value));
    const { responses } = await keyspace.execute(txnOf([], [putOf("b", "1"), rangeOf("a")], []));
    expect(responses[1]).toMatchObject({ kvs: [{ value }] });
    await expect(keyspace.execute(putOf("a", "v".repeat(1_048_576)))).rejects.toThrow(
      "etcdserver: request is too large",
    );
  });
});

/** Resolves with the time from the last renewal of a two-second lease until a live member saw it expire. */
async function lastedMs(
  seed: number,
  during: (world: World, keyspace: KeyspaceClient) => Promise<void>,
): Promise<number> {
  const world = simulate({ members: 3, seed });
  let lasted = 0;
  await world.run(async () => {
    await ready(world);
    const { leader } = (world.member(1) as JoinedMember).state.host;
    const keyspace = of(world, world.members.find((id) => id !== leader) as number);
    await keyspace.execute({ type: "grant", lease: "7", ttl: 2 });
    await keyspace.execute(putOf("a", "1", { lease: "7" }));
    let from = world.now();
    let until = 0;
    keyspace.listen((change) => {
      if (change?.renewed !== null && change !== null) from = world.now();
      if (change?.ended === "7") until = world.now();
    });
    await during(world, keyspace);
    while (until === 0) await world.sleep(50);
    expect(await keyspace.ask(rangeOf("a"))).toMatchObject({ count: 0 });
    lasted = until - from;
  });
  return lasted;
}

const nothing = async (): Promise<void> => {};

test("a lease ends with its keys once it has not been renewed for its time to live", async () => {
  for (const seed of [1, 2, 3]) {
    const lasted = await lastedMs(seed, nothing);
    expect(lasted).toBeGreaterThan(1_900);
    expect(lasted).toBeLessThan(3_500);
  }
});

test("a lease that is renewed does not end", async () => {
  let renewals = 0;
  const lasted = await lastedMs(5, async (world, keyspace) => {
    for (; renewals < 5; renewals++) {
      await world.sleep(1_500);
      await keyspace.execute({ type: "renew", lease: "7" });
    }
  });
  expect(renewals).toBe(5);
  expect(lasted).toBeGreaterThan(1_900);
});

test("a lease ends even if the leader has been killed, and never before its time", async () => {
  for (const seed of [1, 2, 3]) {
    const lasted = await lastedMs(seed, async (world) => {
      await world.sleep(1_000);
      const { leader } = (world.member(1) as JoinedMember).state.host;
      world.kill(leader as number);
    });
    expect(lasted).toBeGreaterThan(1_900);
    expect(lasted).toBeLessThan(10_000);
  }
});
