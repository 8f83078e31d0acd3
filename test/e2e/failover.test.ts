/**
 * Checks the main use case on real processes: they elect a leader, the leader dies or is paused, and a different
 * process takes over.
 */
import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, test } from "vitest";
import type { LifecycleEvent } from "../../src/cluster/local/lifecycle.ts";
import { ClusterUnderTest, coterie, endAll, occupyPort, until } from "./cluster-under-test.ts";

afterEach(endAll);

const isLeader = (leader: number, agreed: readonly number[]) => (event: LifecycleEvent) =>
  event.event === "leader" && event.leader === leader && event.agreed.join() === agreed.join();

test("SIGKILL of the leader from outside: the highest alive node leads, and every alive node agrees", async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "5");
  expect(cluster.ready.nodes.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4]);
  await cluster.agreed(4, [0, 1, 2, 3, 4]);

  const victim = cluster.pidOf(4);
  cluster.kill(4);
  const tookMs = await cluster.agreed(3, [0, 1, 2, 3]);
  console.log(`failover after SIGKILL: ${tookMs} ms`);

  const exited = await cluster.event("exited");
  expect(exited).toMatchObject({ node: 4, pid: victim, signal: "SIGKILL", code: null, restartInMs: null });
  const seen = cluster.events.indexOf(exited);
  await until("it learns that 3 leads", () => cluster.events.slice(seen).some(isLeader(3, [0, 1, 2, 3])), cluster);
  const dead = (await cluster.status()).nodes[4];
  expect(dead).toMatchObject({
    id: 4,
    pid: null,
    alive: false,
    leader: null,
    term: null,
    role: null,
    process: "exited",
  });
});

test("--restart brings the old leader back, and it bullies its way in", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--restart");
  const before = cluster.pidOf(2);
  cluster.signal("SIGSTOP"); // Prevents a restart before the others have continued.
  cluster.kill(2);
  for (const { id, admin } of cluster.ready.nodes.slice(0, 2))
    await until(`${id} follows 1`, async () => {
      const { leader } = (await (await fetch(`${admin}/status`)).json()) as { leader: number | null };
      return leader === 1;
    });
  cluster.signal("SIGCONT");
  await cluster.event("started");
  const tookMs = await cluster.agreed(2, [0, 1, 2]);
  console.log(`back in the lead after ${tookMs} ms`);
  expect(await cluster.event("exited")).toMatchObject({ node: 2, restartInMs: 1_000 });
  expect(cluster.pidOf(2)).not.toBe(before);
});

test("--restart retries while a member's port is in use", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "1", "--restart");
  const port = Number((cluster.ready.nodes[0]?.address ?? "").split(":").at(-1));
  cluster.signal("SIGSTOP"); // Prevents a restart before the port is taken.
  cluster.kill(0);
  const { release } = await occupyPort(port);
  cluster.signal("SIGCONT");
  const killed = await cluster.event("exited");
  const refused = await cluster.event("exited", cluster.events.indexOf(killed) + 1);
  expect(refused).toMatchObject({ node: 0, code: 1, restartInMs: 2_000 });
  release();
  await cluster.agreed(0, [0]);
});

test("SIGSTOP of the leader from outside is a failover, SIGCONT brings it back", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "4");
  cluster.kill(3, "SIGSTOP");
  const awayMs = await cluster.agreed(2, [0, 1, 2]);
  expect(await cluster.event("paused")).toEqual({ event: "paused", node: 3, pid: cluster.pidOf(3) });
  expect((await cluster.status()).nodes[3]).toMatchObject({ alive: false, process: "paused", pid: cluster.pidOf(3) });

  cluster.kill(3, "SIGCONT");
  const backMs = await cluster.agreed(3, [0, 1, 2, 3]);
  expect(await cluster.event("resumed")).toEqual({ event: "resumed", node: 3, pid: cluster.pidOf(3) });
  console.log(`failover after SIGSTOP: ${awayMs} ms, back after SIGCONT: ${backMs} ms`);
});

test("a single member leads itself", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "1");
  await cluster.agreed(0, [0]);
});

test("a protocol without a leader is ready when every member answers", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "2", "--protocol", "heartbeat");
  expect(cluster.ready).toMatchObject({ leader: null });
  await until("all answer, and none names a leader", async () => {
    const { nodes } = await cluster.status();
    return nodes.every(({ alive, leader }) => alive && leader === null);
  });
  await until("`coterie status` reports no problem", async () => {
    const { code, stdout } = await coterie("status", "--admin", cluster.ready.admin);
    return code === 0 && stdout.split("running").length === 3;
  });
});

test("a protocol without an election yet: ready without a leader, and with one after a command", {
  tags: ["long"],
}, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--protocol", "chang-roberts");
  expect(cluster.ready).toMatchObject({ leader: null });
  const words = "coterie: members 0, 1 and 2 do not know of a leader\n"; // Shown once all three answer in time.
  await until("`coterie status` says so", async () => {
    const { code, stderr } = await coterie("status", "--admin", cluster.ready.admin);
    return code === 1 && stderr === words;
  });
  await cluster.command(0, "election.call");
  await cluster.agreed(2, [0, 1, 2]);
});

test("`coterie status` names the alive members and the leader", async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "3");
  cluster.kill(0);
  await cluster.agreed(2, [1, 2]);
  const rows = [
    ["NODE", "PID", "STATE", "ROLE", "LEADER", "TERM"],
    ["0", "-", "exited", "-", "-", "-"],
    ["1", String(cluster.pidOf(1)), "running", "follower", "2", "-"],
    ["2", String(cluster.pidOf(2)), "running", "leader", "2", "-"],
  ];
  let said = "";
  // A member that is slow to answer is shown as such.
  await until(
    () => `the table is right, but it is ${said}`,
    async () => {
      const { stdout, code } = await coterie("status", "--admin", cluster.ready.admin);
      said = stdout;
      const shown = stdout.trimEnd().split("\n");
      const cells = shown.map((line) => line.split(/\s{2,}/));
      return code === 0 && isDeepStrictEqual(cells, rows);
    },
  );
  await until("--json prints the same as the page", async () => {
    const json = await coterie("status", "--admin", cluster.ready.admin, "--json");
    return isDeepStrictEqual(JSON.parse(json.stdout || "null"), await cluster.status());
  });
});

test("`coterie status` fails while the alive members disagree", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "2");
  await cluster.act({ type: "cut", nodes: [0, 1] });
  const { code, stderr } = await until("both lead", async () => {
    const status = await coterie("status", "--admin", cluster.ready.admin);
    return status.code === 1 && status.stderr.includes("node 0 names 0") ? status : null;
  });
  expect(code).toBe(1);
  expect(stderr).toBe("coterie: the members do not agree on a leader: node 0 names 0, node 1 names 1\n");
});
