/** The main job: real processes choose a leader, the leader dies or sleeps, and another takes over. */
import { afterEach, expect, test } from "vitest";
import { ClusterUnderTest, coterie, endAll, occupyPort, until } from "./cluster-under-test.ts";

afterEach(endAll);

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
  expect(await cluster.event("leader", seen)).toMatchObject({ leader: 3, agreed: [0, 1, 2, 3] });
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
  cluster.kill(2);
  await cluster.agreed(1, [0, 1]);
  const tookMs = await cluster.agreed(2, [0, 1, 2]);
  console.log(`back in the lead after ${tookMs} ms`);
  expect(await cluster.event("exited")).toMatchObject({ node: 2, restartInMs: 1_000 });
  expect(cluster.pidOf(2)).not.toBe(before);
});

test("--restart tries again while a member's port is taken by another", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "1", "--restart");
  const port = Number((cluster.ready.nodes[0]?.address ?? "").split(":").at(-1));
  cluster.kill(0);
  const killed = await cluster.event("exited");
  const { release } = await occupyPort(port);
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

test("a protocol without a leader is ready when everybody answers", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "2", "--protocol", "heartbeat");
  expect(cluster.ready).toMatchObject({ leader: null });
  const { nodes } = await cluster.status();
  expect(nodes.every(({ alive, leader }) => alive && leader === null)).toBe(true);
});

test("an election that nobody has called yet: ready without a leader, and one by command", {
  tags: ["long"],
}, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--protocol", "chang-roberts");
  expect(cluster.ready).toMatchObject({ leader: null });
  expect((await cluster.act({ type: "command", node: 0, command: "election.call" })).status).toBe(200);
  await cluster.agreed(2, [0, 1, 2]);
});

test("`coterie status` says who is alive and who leads", async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "3");
  cluster.kill(0);
  await cluster.agreed(2, [1, 2]);
  const { stdout, code } = await coterie("status", "--admin", cluster.ready.admin);
  const rows = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/\s{2,}/));
  expect(rows).toEqual([
    ["NODE", "PID", "STATE", "ROLE", "LEADER", "TERM"],
    ["0", "-", "exited", "-", "-", "-"],
    ["1", String(cluster.pidOf(1)), "running", "follower", "2", "-"],
    ["2", String(cluster.pidOf(2)), "running", "leader", "2", "-"],
  ]);
  expect(code).toBe(0);
  const json = await coterie("status", "--admin", cluster.ready.admin, "--json");
  expect(JSON.parse(json.stdout)).toEqual(await cluster.status());
});

test("`coterie status` fails while the alive members disagree", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "2");
  await cluster.act({ type: "cut", nodes: [0, 1] });
  const { code, stderr } = await until("both lead", async () => {
    const status = await coterie("status", "--admin", cluster.ready.admin);
    return status.code === 1 && status.stderr.includes("node 0 says 0") ? status : null;
  });
  expect(code).toBe(1);
  expect(stderr).toBe("coterie: the members do not agree on a leader: node 0 says 0, node 1 says 1\n");
});
