/** What a member counts for Prometheus, as a registry of prom-client and the admin page show it. */
import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { expect, test, vi } from "vitest";
import { closedAfterEach } from "../../../test/network/closing.ts";
import { freePorts } from "../../../test/network/free-ports.ts";
import { cluster, startAll } from "../../../test/network/joined.ts";
import { soleFounder } from "../../../test/services/sole-founder.ts";
import { connect } from "../../client/node.ts";
import { realPlatform } from "../../runtime/platform/real.ts";
import { GroupIdentity } from "../../runtime/transport/identity.ts";
import type { Leadership, Member } from "./api.ts";
import type { CoordinationError } from "./coordination-error.ts";
import { JoinedMember } from "./joined-member.ts";
import { membershipOf } from "./membership.ts";

const closing = closedAfterEach();
const PATIENCE = { timeout: 60_000, interval: 5 };

/** Each line's value, by its name with labels. */
async function valuesIn(registry: Registry): Promise<Record<string, number>> {
  const lines = (await registry.metrics()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return Object.fromEntries(lines.map((line) => line.split(" ")).map(([name, value]) => [name, Number(value)]));
}

async function joined(size: number, options = {}) {
  const it = closing(await cluster(size, options));
  const registry = new Registry();
  const member = await it.start(1, { registry });
  return { it, registry, member, values: () => valuesIn(registry) };
}

test("locks are counted as they are acquired, waited for, given back, lost and not had in time", async () => {
  const { member, values } = await joined(1, { timing: "patient" });
  const grant = await member.mutex("invoice-1").acquire();
  const waiting = member.mutex("invoice-1").acquire();
  await expect(member.mutex("invoice-1").acquire({ timeoutMs: 1 })).rejects.toMatchObject({ code: "acquire-timeout" });
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
});

test("leaderships are counted while there is work under them", async () => {
  const { member, values } = await joined(1, { timing: "patient" });
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
});

test("a member alone among three has no quorum, and loses what it held; with the others it has one, and knows who serves", async () => {
  const it = closing(await cluster(3));
  const members = await startAll(it);
  await Promise.all(members.map((member) => member.ready()));
  await (members[0] as Member).leave();
  const registry = new Registry();
  const first = await it.start(1, { registry });
  await first.ready();
  const values = () => valuesIn(registry);
  const held = { coterie_quorum: 1, coterie_lock_server_known: 1, coterie_members_reachable: 3 };
  await vi.waitFor(async () => expect(await values()).toMatchObject({ ...held, coterie_peers_suspected: 0 }), PATIENCE);
  await first.mutex("invoice").acquire();
  const { signal } = first;
  const begun = new Promise<void>((led) => {
    const work = (leadership: Leadership): Promise<void> =>
      new Promise((done) => {
        leadership.signal.addEventListener("abort", () => done());
        led();
      });
    first
      .election("report")
      .lead((leadership) => work(leadership as Leadership))
      .catch((error: unknown) => expect(signal.reason).toMatchObject({ code: (error as CoordinationError).code }));
  });
  await begun;
  const [, second, third] = members as [Member, Member, Member];
  await Promise.all([second.leave(), third.leave()]);
  const lost = {
    coterie_quorum: 0,
    coterie_lock_server_known: 0,
    coterie_members_reachable: 1,
    coterie_peers_suspected: 2,
  };
  await vi.waitFor(async () => {
    const now = await values();
    const won = now.coterie_leadership_won_total; // Once, but where this process stood still in between.
    expect(won).toBeGreaterThan(0);
    expect(now).toMatchObject({ ...lost, coterie_lock_lost_total: 1, coterie_leadership_lost_total: won });
  }, PATIENCE);
});

test("of the journal: what is written, and how long the disk takes", async () => {
  const { member, values } = await joined(1);
  await member.mutex("invoice").use(() => {});
  const now = await values();
  const { coterie_journal_records_total: records, coterie_journal_written_bytes_total: bytes } = now;
  expect(records).toBeGreaterThan(0);
  expect(bytes).toBeGreaterThan(records as number);
  expect(now.coterie_journal_sync_seconds_count).toBeGreaterThan(0);
  expect(now).toMatchObject({ coterie_journal_failures_total: 0 });
});

test("of the log: who leads, how far it is, how long commits and reads take, and how much room is left", async () => {
  const { member, values } = await joined(1, { timing: "patient" });
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
  expect(entries).toBe(now.coterie_log_last_index); // There is no snapshot yet.
  expect(now.coterie_log_applied_index).toBe(now.coterie_log_commit_index);
  await watch.return?.();
  expect(await values()).toMatchObject({ coterie_state_watches: 0, coterie_snapshot_chars: 0 });
});

test("of the log: what clients wait for counts where they speak, and so do their watches", async () => {
  const it = closing(await cluster(1, { timing: "patient" }));
  const registry = new Registry();
  const member = await it.start(1, { registry, clients: "127.0.0.1:0" });
  const client = await connect({ endpoints: [member.clients as string] });
  const stock = client.map<number>("stock");
  const changes = stock.watch({ after: 0 });
  await stock.put("apples", 3); // Its session is opened by a command as well.
  await changes.next();
  const values = await valuesIn(registry);
  expect(values).toMatchObject({ coterie_state_watches: 1, coterie_clients_connected: 1 });
  expect(values.coterie_log_commit_seconds_count).toBeGreaterThan(1);
  await client.close();
  await vi.waitFor(async () => expect(await valuesIn(registry)).toMatchObject({ coterie_state_watches: 0 }), PATIENCE);
});

test("of the log: the leader knows how far its followers are, and snapshots are measured", async () => {
  const it = closing(await cluster(3, { timing: "patient" }));
  const registries = [1, 2, 3].map(() => new Registry());
  const members = await Promise.all(registries.map((registry, at) => it.start(at + 1, { registry })));
  await Promise.all(members.map((member) => member.ready()));
  const map = (members[0] as Member).map<string>("m");
  const text = "x".repeat(500_000);
  for (let number = 0; number < 4; number++) await map.put("key", `${number}${text}`); // A snapshot is due at a million characters.
  await vi.waitFor(async () => {
    const all = await Promise.all(registries.map(valuesIn));
    const leader = all.find((values) => values.coterie_log_leads === 1) ?? {};
    const lags = Object.entries(leader).filter(([name]) => name.startsWith("coterie_log_follower_lag_entries"));
    expect(lags.map(([, lag]) => lag)).toEqual([0, 0]);
    for (const values of all) {
      expect(values.coterie_snapshot_seconds_count).toBeGreaterThan(0);
      expect(values.coterie_snapshot_chars).toBeGreaterThan(500_000);
      expect(values.coterie_log_commit_index).toBe(leader.coterie_log_commit_index);
    }
  }, PATIENCE);
});

test("names make no metric and no label", async () => {
  const { member, registry, values } = await joined(1);
  await member.mutex("a").use(() => {});
  await member.election("a").lead(() => {});
  const before = Object.keys(await values());
  for (let number = 0; number < 20; number++) await member.mutex(`invoice-${number}`).use(() => {});
  expect(Object.keys(await values())).toEqual(before);
  expect(await registry.metrics()).not.toContain("invoice");
});

test("no two members share a registry, and one that has left is no longer in it", async () => {
  const { it, member, registry } = await joined(2);
  const own = registry.getMetricsAsArray().length;
  await expect(it.start(2, { registry })).rejects.toMatchObject({ code: "registry-taken" });
  expect(registry.getMetricsAsArray()).toHaveLength(own);
  await member.leave();
  expect(registry.getMetricsAsArray()).toEqual([]);
  await it.start(2, { registry });
  expect(registry.getMetricsAsArray()).toHaveLength(own);
});

test("a metric of the caller's own with such a name is left alone", async () => {
  const it = closing(await cluster(1));
  const registry = new Registry();
  registry.registerMetric({ name: "coterie_quorum", help: "", get() {} } as never);
  await expect(it.start(1, { registry })).rejects.toThrow(
    /^expected registry of join\(\) to have no metric coterie_quorum/,
  );
  expect(registry.getMetricsAsArray()).toHaveLength(1);
});

test("a member that has failed stays in the registry, without a quorum, until it is told to leave", async () => {
  const [port] = (await freePorts(1)) as [number];
  const registry = new Registry();
  const log = { info() {}, warn() {}, error() {} };
  const options = { id: 1, members: { 1: `127.0.0.1:${port}` }, timing: "patient", log, registry } as const;
  const membership = await membershipOf(realPlatform, options);
  const identity = new GroupIdentity({ self: 1, members: [1], log: membership.log });
  const member = new JoinedMember({ ...membership, ...soleFounder(), identity });
  await member.open();
  await member.mutex("account").acquire();
  expect(await valuesIn(registry)).toMatchObject({ coterie_quorum: 1, coterie_locks_held: 1 });
  member.fail(new Error("the disk is full"));
  expect(await valuesIn(registry)).toMatchObject({ coterie_quorum: 0, coterie_lock_lost_total: 1 });
  await member.leave();
  expect(registry.getMetricsAsArray()).toEqual([]);
});

test("an OpenMetrics registry and the admin page show the same, each in its way", async () => {
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

test("docs/metrics.md has each metric, and no other", async () => {
  const it = closing(await cluster(1));
  const member = await it.start(1, { admin: "127.0.0.1:0" });
  const page = await (await fetch(`${member.admin}/metrics`)).text();
  const shown = [...page.matchAll(/^# TYPE (coterie_\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`);
  const text = readFileSync(new URL("../../../docs/metrics.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `(coterie_\w+)(?:\{\w+\})?` \| (\w+) \|/gm)];
  expect(rows.map(([, name, type]) => `${name} ${type}`).toSorted()).toEqual(shown.toSorted());
});
