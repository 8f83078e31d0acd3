/** Checks that `coterie up` leaves no process behind, regardless of how it ends and of the state of its members. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { ClusterUnderTest, Coterie, endAll, isAlive, until } from "./cluster-under-test.ts";

afterEach(async () => {
  vi.unstubAllEnvs();
  await endAll();
});

async function nobodyIsLeft(cluster: ClusterUnderTest): Promise<void> {
  const pids = [cluster.pid, ...cluster.pids.values()];
  await until(
    () => `none of ${pids.filter(isAlive).join(", ")} is left`,
    () => !pids.some(isAlive),
  );
}

const title = "%s stops every member, and the exit code is 0";
test.each(["SIGINT"] as const)(title, (signal) => stopsEveryMember(signal));
test.each(["SIGTERM", "SIGHUP"] as const)(title, { tags: ["long"] }, (signal) => stopsEveryMember(signal));

async function stopsEveryMember(signal: NodeJS.Signals): Promise<void> {
  const cluster = await ClusterUnderTest.up("--nodes", "3", "--restart");
  cluster.signal(signal);
  expect(await cluster.finished).toMatchObject({ code: 0, signal: null, stderr: "" });
  await nobodyIsLeft(cluster);
  expect(cluster.events.filter(({ event }) => event === "stopping")).toHaveLength(1);
  expect(cluster.events.filter(({ event }) => event === "exited")).toHaveLength(3);
}

test("Ctrl-C also ends members that are paused, dead or about to be restarted", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "4", "--restart");
  cluster.kill(0, "SIGSTOP");
  cluster.kill(3, "SIGSTOP");
  cluster.kill(1);
  await cluster.event("exited");
  cluster.signal("SIGINT");
  expect((await cluster.finished).code).toBe(0);
  await nobodyIsLeft(cluster);
});

test("a second Ctrl-C kills at once", { tags: ["long"] }, async () => {
  const cluster = await ClusterUnderTest.up("--nodes", "2");
  cluster.signal("SIGINT");
  cluster.signal("SIGINT");
  expect((await cluster.finished).code).toBe(0);
  await nobodyIsLeft(cluster);
});

test.runIf(process.platform === "linux")("Ctrl-C while the cluster is still starting", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "coterie-test-"));
  const wait = join(scratch, "wait.mjs");
  writeFileSync(wait, 'if (process.argv[2] === "node") await new Promise(() => setInterval(() => {}, 60_000));');
  // Members hang in this module and never become ready.
  vi.stubEnv("NODE_OPTIONS", `--import ${pathToFileURL(wait).href}`);
  const starting = new Coterie("up", "--port", "0", "--json", "--nodes", "3");
  const members = (): number[] => childrenOf(starting.pid);
  const pids = await until("members are being started", () => (members().length > 2 ? members() : null), starting);
  starting.signal("SIGINT");
  expect(await starting.finished).toMatchObject({ code: 0, stdout: "" });
  await until("no process is left", () => !pids.some(isAlive));
  rmSync(scratch, { recursive: true });
});

test("members end by themselves when `up` is killed, and its folder is removed, too", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "coterie-test-"));
  vi.stubEnv("TMPDIR", scratch);
  const cluster = await ClusterUnderTest.up("--nodes", "3");
  expect(readdirSync(scratch)).toHaveLength(1);
  cluster.signal("SIGKILL");
  await nobodyIsLeft(cluster);
  await until("its folder is gone", () => readdirSync(scratch).length === 0);
  rmSync(scratch, { recursive: true });
});

test.skipIf(process.platform === "win32")(
  "members end when `up` is killed, even paused ones",
  { tags: ["long"] },
  async () => {
    const cluster = await ClusterUnderTest.up("--nodes", "3");
    for (const node of [0, 1, 2]) cluster.kill(node, "SIGSTOP");
    await until("all are paused", () => cluster.events.filter(({ event }) => event === "paused").length === 3, cluster);
    cluster.signal("SIGKILL");
    await nobodyIsLeft(cluster);
  },
);

/** Reads the direct children of a process from Linux `/proc`. */
function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]) === parent;
    } catch {
      return false; // The process has ended.
    }
  });
}
