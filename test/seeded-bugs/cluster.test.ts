/**
 * Checks that the swarm of whole clusters finds every seeded bug.
 *
 * @module-tag long
 */
import { expect, it } from "vitest";
import { clusterSwarm } from "../testing/cluster-swarm/cluster-swarm.ts";
import { releaseNamed } from "../testing/cluster-swarm/upgrade.ts";
import { clusterBugs } from "./cluster.ts";

/** The number of seeds tried for each bug. One of them must find it. */
const SEEDS = 100;

it.each(clusterBugs)("$name: $summary", async ({ name, finds, from = 1 }) => {
  const release = await releaseNamed(name);
  const underSeeds = async (): Promise<void> => {
    for (let seed = from; seed < from + SEEDS; seed++) await clusterSwarm({ seed, present: release, later: release });
  };
  await expect(underSeeds()).rejects.toThrow(finds);
});
