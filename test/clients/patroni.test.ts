/**
 * Runs Debian's Patroni with two PostgreSQL servers on a cluster of Coterie, through the JSON gateway. The primary and
 * Coterie's leader are killed at the same time; the standby takes over, and no acknowledged write is lost.
 * COTERIE_CLIENT_ROUNDS=20 repeats that.
 *
 * @module-tag long
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endAll, until } from "../e2e/cluster-under-test.ts";
import { freePorts } from "../network/free-ports.ts";
import { TEST_TIMEOUT_MS } from "../patience.ts";
import { EtcdMembers, requireInstalled } from "./etcd-members.ts";
import { PATRONI, PatroniNode } from "./patroni-node.ts";
import { storedIn, Writer } from "./postgres-writer.ts";

const ROUNDS = Number(process.env.COTERIE_CLIENT_ROUNDS ?? 1);
const folder = mkdtempSync(join(tmpdir(), "coterie-patroni-"));
const nodes: PatroniNode[] = [];
let members: EtcdMembers;

beforeAll(async () => {
  requireInstalled(PATRONI, "patroni python3-etcd python3-dnspython postgresql");
  requireInstalled("/usr/lib/postgresql", "postgresql");
  chmodSync(folder, 0o755); // PostgreSQL runs as another user.
  members = await EtcdMembers.start("default");
  const ports = await freePorts(4);
  for (const [at, name] of ["a", "b"].entries()) {
    const own = { rest: ports[2 * at] as number, postgres: ports[2 * at + 1] as number };
    nodes.push(new PatroniNode(name, { folder, etcd: members.addresses, ports: own }));
  }
  for (const node of nodes) node.start();
});
afterAll(async () => {
  await endAll();
  for (const node of nodes) await node.kill();
  members?.remove();
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});

const withRole = (role: string): Promise<PatroniNode> =>
  until(
    () => `a node is ${role}, but the nodes said ${nodes.map(({ said }) => said).join("\n---\n")}`,
    async () => {
      for (const node of nodes) if ((await node.role()) === role) return node;
      return null;
    },
  );

test("the standby takes over while Coterie's leader is killed, and keeps all acknowledged writes", {
  timeout: ROUNDS * TEST_TIMEOUT_MS,
}, async () => {
  const writer = new Writer(nodes);
  const seconds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await withRole("sync_standby running");
    const before = writer.acknowledged.length;
    await until("some more writes are acknowledged", () => writer.acknowledged.length > before + 50);
    const [primary, leader] = [await withRole("leader running"), await members.leader()];
    const killedAt = performance.now();
    await Promise.all([primary.kill(), members.kill(leader)]);
    const count = writer.acknowledged.length;
    await until("a write is acknowledged again", () => writer.acknowledged.length > count);
    seconds.push((performance.now() - killedAt) / 1_000);
    const successor = await withRole("leader running");
    expect(successor.name).not.toBe(primary.name);
    await members.serve(leader);
    primary.start();
  }
  await withRole("sync_standby running");
  await writer.close();
  const stored = await storedIn(await withRole("leader running"));
  expect(writer.acknowledged.filter((number) => !stored.has(number))).toEqual([]);
  console.log(
    `Patroni: ${ROUNDS} fail-overs, seconds until the next write: ${seconds.map((each) => each.toFixed(1)).join(", ")}; ${writer.acknowledged.length} writes acknowledged, none lost`,
  );
});
