/**
 * A test of nightly-report.ts. Run it with `npx vitest run`. A failure names its seed and the command that replays it.
 */
import { guard } from "coterie";
import { type ProcessTools, seeds, simulate } from "coterie/testing";
import { expect, test } from "vitest";
import { type Archive, writeReport } from "./nightly-report.js";

const nights = [1, 2, 3];

/** Creates a slow archive: the replica's state may be outdated when its call arrives. */
function slowArchive(reports: number[], accept: (token: number) => void) {
  return ({ sleep, random }: ProcessTools): Archive => ({
    async has(night, token) {
      accept(token);
      const isThere = reports.includes(night);
      await sleep(600 * random());
      return isThere;
    },
    async write(night, token) {
      await sleep(600 * random());
      accept(token);
      reports.push(night);
    },
  });
}

/** Runs three replicas for three nights, with the random faults of this seed. */
async function threeNights(seed: number, accept: (token: number) => void): Promise<void> {
  const reports: number[] = [];
  const archiveFor = slowArchive(reports, accept);
  const done = new Set<number>();
  const world = simulate({
    members: 3,
    seed,
    faults: { kinds: ["crash", "pause", "partition"], forMs: 3_000 },
    join: { timing: "fast" },
    async program(member, process) {
      for (const night of nights) await writeReport(member, archiveFor(process), night, process.sleep);
      done.add(member.id);
    },
  });
  await world.run(async () => {
    while (done.size < 3) await world.sleep(100);
    expect(reports).toEqual(nights);
  });
}

test("the report is written exactly once a night, under a thousand random fault plans", async () => {
  for (const seed of seeds(1_000)) await threeNights(seed, guard());
});

test("without the token check it is not, and the error names a seed that shows it", async () => {
  const unguarded = async (): Promise<void> => {
    for (const seed of seeds(1_000)) await threeNights(seed, () => {});
  };
  await expect(unguarded()).rejects.toThrow(/Seed \d+\. Replay: COTERIE_SEED=\d+ npx vitest run \S+test\.ts/);
});
