/**
 * The swarm of whole clusters finds every bug that is put into it.
 *
 * @module-tag long
 */
import { expect, it } from "vitest";
import { clusterSwarm } from "../testing/cluster-swarm/cluster-swarm.ts";
import { releaseNamed } from "../testing/cluster-swarm/upgrade.ts";
import { clusterBugs } from "./cluster.ts";

/** The first that finds each is lower. */
const SEEDS = 100;

it.each(clusterBugs)("$name: $summary", { timeout: 600_000 }, async ({ name, finds }) => {
  const release = await releaseNamed(name);
  const underSeeds = async (): Promise<void> => {
    for (let seed = 1; seed <= SEEDS; seed++) await clusterSwarm({ seed, present: release, later: release });
  };
  await expect(underSeeds()).rejects.toThrow(finds);
});
