/**
 * Checks the metrics of a member in a registry of prom-client. Tests run in virtual time, except those with sockets.
 */

import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { cluster } from "../../../test/network/joined.ts";
import { PATIENCE } from "../../../test/patience.ts";
import { connect } from "../../client/node.ts";
import { simulate, type World } from "../../testing/index.ts";
import { release } from "../../testing/release.ts";
import type { WorldOptions } from "../../testing/world-options.ts";
import type { Leadership, Member } from "./api.ts";

const closing = closedAfterEach();

/** Returns the value of each line, keyed by its name with labels. */
async function valuesIn(registry: Registry): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => line.split(" ")).map(([name, value]) => [name, Number(value)]));
}

/** Creates members that each have their own registry, a new one for each start. */
function counting(size: number, join: WorldOptions["join"] = {}): { world: World; registryOf(id: number): Registry } {
  const registries = new Map<number, Registry>();
  const world = simulate({
    members: size,
    seed: 1,
    join,
    release: (id) => ({
      ...release,
      joinOn(platform, options) {
        const registry = new Registry();
        registries.set(id, registry);
        return release.joinOn(platform, { ...options, registry });
      },
    }),
  });
  return { world, registryOf: (id) => registries.get(id) as Registry };
}

interface Alone {
  readonly member: Member;
  readonly registry: Registry;
  readonly world: World;
  values(): Promise<Record<string, number>>;
}

const alone = (body: (it: Alone) => Promise<void>): Promise<void> => {
  const { world, registryOf } = counting(1);
  return world.run(() => {
    const registry = registryOf(1);
    return body({ member: world.member(1), registry, world, values: () => valuesIn(registry) });
  });
};

test("counts locks that are acquired, awaited, released, lost and timed out", () =>
  alone(async ({ member, values }) => {
    const grant = await member.mutex("invoice-1").acquire();
    const waiting = member.mutex("invoice-1").acquire();
    await expect(member.mutex("invoice-1").acquire({ timeoutMs: 1 })).rejects.toMatchObject({
      code: "acquire-timeout",
    });
    expect(await values()).toMatchObject({
      coterie_locks_held: 1,
      coterie_lock_waiters: 1,
      coterie_lock_acquired_total: 1,
      coterie_lock_released_total: 0,
      coterie_lock_timeouts_total: 1,
      'coterie_instances{kind="mutex"}': 1,
      'coterie_instances{kind="election"}': 0,
      'coterie_lock_acquire_seconds_bucket{le="+Inf"}': 1,
      coterie_lock_acquire_seconds_count: 1,
    });
    await grant.release();
    await grant.release();
    await (await waiting).release();
    expect(await values()).toMatchObject({
      coterie_locks_held: 0,
      coterie_lock_waiters: 0,
      coterie_lock_acquired_total: 2,
      coterie_lock_released_total: 2,
      coterie_lock_lost_total: 0,
      coterie_lock_acquire_seconds_count: 2,
    });
  }));

test("counts leaderships while there is work under them", () =>
  alone(async ({ member, values }) => {
    let finish = (): void => {};
    const work = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let leading: Promise<void> = Promise.resolve();
    await new Promise<void>((began) => {
      leading = member.election("report").lead(() => {
        began();
        return work;
      });
    });
    expect(await values()).toMatchObject({ coterie_leaderships_held: 1, coterie_leadership_won_total: 1 });
    finish();
    await leading;
    expect(await values()).toMatchObject({ coterie_leaderships_held: 0, coterie_leadership_lost_total: 0 });
  }));

test("a member alone among three has no quorum, and loses its locks; with the others it has one, and knows the leader of the log", () => {
  const { world, registryOf } = counting(3);
  return world.run(async () => {
    const members = world.members.map((id) => world.member(id));
    await Promise.all(members.map((member) => member.ready()));
    await world.sleep(500);
    const values = () => valuesIn(registryOf(1));
    const held = { coterie_quorum: 1, coterie_state_leader_known: 1, coterie_members_reachable: 3 };
    expect(await values()).toMatchObject({ ...held, coterie_peers_suspected: 0 });
    const [first, second, third] = members as [Member, Member, Member];
    await first.mutex("invoice").acquire();
    await new Promise<void>((led) => {
      const work = (leadership: Leadership): Promise<void> =>
        new Promise((done) => {
          leadership.signal.addEventListener("abort", () => done());
          led();
        });
      void first.election("report").lead(work);
    });
    await Promise.all([second.leave(), third.leave()]);
    await world.sleep(8_000); // Longer than a session.
    expect(await values()).toMatchObject({
      coterie_quorum: 0,
      coterie_state_leader_known: 0,
      coterie_members_reachable: 1,
      coterie_peers_suspected: 2,
      coterie_lock_lost_total: 1,
      coterie_leadership_won_total: 1,
      coterie_leadership_lost_total: 1,
    });
  });
});

test("journal: reports bytes written, and the duration of syncs", () =>
  alone(async ({ member, values }) => {
    await member.mutex("invoice").use(() => {});
    const now = await values();
    const { coterie_journal_records_total: records, coterie_journal_written_bytes_total: bytes } = now;
    expect(records).toBeGreaterThan(0);
    expect(bytes).toBeGreaterThan(records as number);
    expect(now.coterie_journal_sync_seconds_count).toBeGreaterThan(0);
    expect(now).toMatchObject({ coterie_journal_failures_total: 0 });
  }));

test("log: reports the leader, the indices, the duration of commits and reads, and the remaining space", () =>
  alone(async ({ member, values }) => {
    const before = await values();
    const map = member.map<string>("m");
    await map.put("key", "x".repeat(1_000));
    await map.get("key");
    const watch = map.watch();
    const now = await values();
    expect(now).toMatchObject({
      coterie_log_leads: 1,
      coterie_log_leader_changes_total: 1,
      coterie_log_commit_seconds_count: expect.toSatisfy(
        (count) => count > (before.coterie_log_commit_seconds_count ?? 0),
      ),
      coterie_log_read_seconds_count: expect.toSatisfy((count) => count > (before.coterie_log_read_seconds_count ?? 0)),
      coterie_state_sessions: 1,
      coterie_state_watches: 1,
      coterie_state_limit_bytes: 8_388_608,
    });
    const { coterie_log_term: term, coterie_state_bytes: bytes, coterie_log_entries: entries } = now;
    expect(term).toBeGreaterThan(0);
    expect(bytes).toBeGreaterThan(1_000);
    expect(entries).toBe(now.coterie_log_last_index); // No snapshot exists yet.
    expect(now.coterie_log_applied_index).toBe(now.coterie_log_commit_index);
    await watch.return?.();
    expect(await values()).toMatchObject({ coterie_state_watches: 0, coterie_snapshot_chars: 0 });
  }));

test("log: a member counts the calls and watches of the clients connected to it", async () => {
  const it = closing(await cluster(1, { timing: "patient" }));
  const registry = new Registry();
  const member = await it.start(1, { registry, clients: "127.0.0.1:0" });
  const client = await connect({ endpoints: [member.clients as string] });
  const stock = client.map<number>("stock");
  const changes = stock.watch({ after: 0 });
  await stock.put("apples", 3); // The command also opens its session.
  await changes.next();
  const values = await valuesIn(registry);
  expect(values).toMatchObject({ coterie_state_watches: 1, coterie_clients_connected: 1 });
  expect(values.coterie_log_commit_seconds_count).toBeGreaterThan(1);
  await client.close();
  await vi.waitFor(async () => expect(await valuesIn(registry)).toMatchObject({ coterie_state_watches: 0 }), PATIENCE);
});

test("log: the leader reports the lag of its followers, and snapshots are measured", () => {
  const { world, registryOf } = counting(3);
  return world.run(async () => {
    await world.member(1).ready();
    const map = world.member(1).map<string>("m");
    const text = "x".repeat(500_000);
    // Enough characters for a snapshot.
    for (let number = 0; number < 4; number++) await map.put("key", `${number}${text}`);
    await world.sleep(1_000);
    const all = await Promise.all(world.members.map((id) => valuesIn(registryOf(id))));
    const leader = all.find((values) => values.coterie_log_leads === 1) ?? {};
    const lags = Object.entries(leader).filter(([name]) => name.startsWith("coterie_log_follower_lag_entries"));
    expect(lags.map(([, lag]) => lag)).toEqual([0, 0]);
    for (const values of all) {
      expect(values.coterie_snapshot_seconds_count).toBeGreaterThan(0);
      expect(values.coterie_snapshot_chars).toBeGreaterThan(500_000);
      expect(values.coterie_log_commit_index).toBe(leader.coterie_log_commit_index);
    }
  });
});

test("names appear in no metric and no label", () =>
  alone(async ({ member, registry, values }) => {
    await member.mutex("a").use(() => {});
    await member.election("a").lead(() => {});
    const before = Object.keys(await values());
    for (let number = 0; number < 20; number++) await member.mutex(`invoice-${number}`).use(() => {});
    expect(Object.keys(await values())).toEqual(before);
    expect(await registry.metrics()).not.toContain("invoice");
  }));

test("members cannot share a registry, and a member that has left is removed from it", async () => {
  const it = closing(await cluster(2));
  const registry = new Registry();
  const member = await it.start(1, { registry });
  const own = registry.getMetricsAsArray().length;
  await expect(it.start(2, { registry })).rejects.toMatchObject({ code: "registry-taken" });
  expect(registry.getMetricsAsArray()).toHaveLength(own);
  await member.leave();
  expect(registry.getMetricsAsArray()).toEqual([]);
  await it.start(2, { registry });
  expect(registry.getMetricsAsArray()).toHaveLength(own);
});

test("leaves a metric of the caller with the same name alone", async () => {
  const it = closing(await cluster(1));
  const registry = new Registry();
  registry.registerMetric({ name: "coterie_quorum", help: "", get() {} } as never);
  await expect(it.start(1, { registry })).rejects.toThrow(
    /^expected registry of join\(\) to accept the metric coterie_quorum/,
  );
  expect(registry.getMetricsAsArray()).toHaveLength(1);
});

test("a failed member stays in the registry, without a quorum, until it leaves", () =>
  alone(async ({ member, registry, world, values }) => {
    const held = await member.mutex("account").acquire();
    expect(await values()).toMatchObject({ coterie_quorum: 1, coterie_locks_held: 1 });
    world.failDisk(1);
    await expect(member.map("m").put("key", 1)).rejects.toMatchObject({ code: "member-failed" });
    expect(held.isHeld).toBe(false);
    expect(await values()).toMatchObject({ coterie_quorum: 0, coterie_lock_lost_total: 1 });
    await member.leave();
    expect(registry.getMetricsAsArray()).toEqual([]);
  }));

test("an OpenMetrics registry and the admin page show the same values, each in its format", async () => {
  const it = closing(await cluster(1));
  const registry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  const member = await it.start(1, { registry, admin: "127.0.0.1:0" });
  await member.mutex("invoice").use(() => {});
  for (let scrape = 0; scrape < 2; scrape++) {
    expect(await registry.metrics()).toContain("coterie_lock_acquired_total 1");
    expect(await (await fetch(`${member.admin}/metrics`)).text()).toContain("\ncoterie_lock_acquired_total 1\n");
  }
  await member.leave();
  expect(registry.getMetricsAsArray()).toEqual([]);
});

test("docs/reference/metrics.md lists every metric, and no other", async () => {
  const it = closing(await cluster(1));
  const member = await it.start(1, { admin: "127.0.0.1:0" });
  const page = await (await fetch(`${member.admin}/metrics`)).text();
  const shown = [...page.matchAll(/^# TYPE (coterie_\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  const text = readFileSync(new URL("../../../docs/reference/metrics.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `(coterie_\w+)(?:\{\w+\})?` \| (\w+) \|/gm)];
  expect(rows.map(([, name, type]) => `${name} ${type}`).toSorted()).toEqual(shown.toSorted());
});
