/** A whole cluster under random faults in virtual time. */
import { expect, test } from "vitest";
import { clusterSwarm, type SwarmSums } from "./cluster-swarm.ts";
import { releaseNamed } from "./upgrade.ts";

const SHORT_MS = 2_000;
const LONG_MS = 4_000;
const MANY = 60;

const { COTERIE_SEED: replayed, COTERIE_SWARM } = process.env;

async function underSeeds(seeds: readonly number[], faultsMs: number, next = "later"): Promise<SwarmSums> {
  const releases = { present: await releaseNamed("present"), next: await releaseNamed(next) };
  const sums: SwarmSums = {};
  for (const seed of seeds) {
    const t = performance.now(); const c = process.cpuUsage();
    const found = await clusterSwarm({ seed, faultsMs, ...releases }).catch((e) => { if (!process.env.VERBOSE) throw e; console.log(seed, Math.round(performance.now() - t), 'FAIL', e.message.slice(0, 1500), (e.stack||'').split('\n').filter((l: string) => l.includes(' at ')).slice(0,6).join('\n')); return {}; });
    const d = process.cpuUsage(c); if (process.env.VERBOSE) console.log(seed, Math.round(performance.now() - t), Math.round((d.user+d.system)/1000), JSON.stringify(found));
    for (const [name, count] of Object.entries(found)) {
      sums[name] = name.endsWith("Ms") ? Math.max(sums[name] ?? 0, count) : (sums[name] ?? 0) + count;
    }
  }
  return sums;
}
const range = (a: number, b: number) => Array.from({ length: b - a + 1 }, (_, i) => a + i);

test("short", async () => {
  const [a = 1, b = 3] = (COTERIE_SWARM ?? "1-3").split("-").map(Number);
  console.log(JSON.stringify(await underSeeds(replayed ? [Number(replayed)] : range(a, b), LONG_MS)));
});
