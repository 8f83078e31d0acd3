/**
 * Random kills, pauses and restarts. After each, all live nodes must agree on the node with the highest id.
 * COTERIE_SOAK=100 makes it long; COTERIE_SEED repeats a run.
 *
 * @module-tag long
 */
import { afterEach, expect, test } from "vitest";
import { random } from "../../src/core/random.ts";
import { ClusterUnderTest, endAll, until } from "./cluster-under-test.ts";

afterEach(endAll);

const NODES = 5;
const rounds = Number(process.env.COTERIE_SOAK ?? 8);
const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);

test(`after each of ${rounds} random faults and repairs, all alive nodes follow the highest`, async () => {
  console.log(`soak: COTERIE_SOAK=${rounds} COTERIE_SEED=${seed}`);
  const draw = random(seed);
  const cluster = await ClusterUnderTest.up("--nodes", String(NODES));
  const condition = new Map<number, "alive" | "dead" | "asleep">();
  for (const { id } of cluster.ready.nodes) condition.set(id, "alive");
  const took: { ms: number; what: string }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const alive = [...condition.keys()].filter((node) => condition.get(node) === "alive");
    const away = [...condition.keys()].filter((node) => condition.get(node) !== "alive");
    const isRepair = alive.length === 1 || (away.length > 0 && draw.below(2) === 0);
    const node = draw.pick(isRepair ? away : alive);
    const deed = isRepair ? await repair(node) : harm(node);
    const left = [...condition.keys()].filter((each) => condition.get(each) === "alive");
    const what = `${deed} ${node}, so that ${left.join(", ")} are alive`;
    took.push({ ms: await cluster.agreed(Math.max(...left), left), what });
  }
  took.sort((a, b) => a.ms - b.ms);
  const worst = took.at(-1);
  console.log(`soak: agreed after ${took[took.length >> 1]?.ms} ms in the middle`);
  console.log(`soak: agreed after ${worst?.ms} ms at worst: ${worst?.what}`);
  expect(cluster.stderr).not.toContain("error");

  function harm(node: number): string {
    const signal = draw.pick(["SIGKILL", "SIGKILL", "SIGSTOP"] as const);
    cluster.kill(node, signal);
    condition.set(node, signal === "SIGKILL" ? "dead" : "asleep");
    return signal;
  }

  async function repair(node: number): Promise<string> {
    const isAsleep = condition.get(node) === "asleep";
    condition.set(node, "alive");
    if (isAsleep) cluster.kill(node, "SIGCONT");
    else
      await until("its exit has been detected", async () => (await cluster.act({ type: "restart", node })).ok, cluster);
    return isAsleep ? "SIGCONT" : "restart";
  }
});
