/** How long a lock or a leadership is nobody's after a crash, with default settings: exact, in virtual time. docs/services.md shows it. */
import { expect, test } from "vitest";
import type { Member } from "../../src/index.ts";
import { simulate, type World } from "../../src/testing/index.ts";

/** Least, median and most over these stand in docs/services.md. */
const SEEDS = Array.from({ length: 12 }, (_, at) => at + 1);
const FOR_EVER_MS = 60_000;

type Tenure = { readonly token: number };
type Take = (world: World, member: Member) => Promise<Tenure>;

const lock =
  (algorithm: string): Take =>
  (_world, member) =>
    member.mutex("invoice", { algorithm }).acquire();

const leadership =
  (algorithm: "raft" | "epoch-bully"): Take =>
  (world, member) =>
    new Promise((resolve) => {
      const work = async (tenure: Tenure): Promise<void> => {
        resolve(tenure);
        await world.sleep(FOR_EVER_MS);
      };
      member
        .election("report", { algorithm })
        .lead(work)
        .catch(() => {}); // The member is killed.
    });

/** @param isServer whether the member that crashes also leads the log, as the one that most rests on. */
async function failOverMs(take: Take, isServer: boolean, seed: number): Promise<number> {
  const world = simulate({ members: 3, seed });
  let took = Number.NaN;
  await world.run(async () => {
    for (const id of world.members) await world.member(id).ready();
    const { lockServer } = world.member(1).status();
    const holder = world.members.find((id) => (id === lockServer) === isServer) as number;
    const next = world.members.find((id) => id !== holder && id !== lockServer) as number;
    const { token } = await take(world, world.member(holder));
    const waiting = take(world, world.member(next));
    await world.sleep(1_000 + 37 * seed);
    world.kill(holder);
    const killedAt = world.now();
    expect((await waiting).token).toBeGreaterThan(token);
    took = world.now() - killedAt;
  });
  return took;
}

const spread = (values: readonly number[]): readonly number[] => {
  const sorted = [...values].sort((a, b) => a - b);
  return [sorted[0], sorted[Math.floor(sorted.length / 2)], sorted.at(-1)].map((ms) => Math.round(ms as number));
};

async function measured(take: Take, isServer: boolean, seeds = SEEDS): Promise<readonly number[]> {
  const all: number[] = [];
  for (const seed of seeds) all.push(await failOverMs(take, isServer, seed));
  return spread(all);
}

const defaults = [
  ["lock", lock("raft"), false],
  ["lock, whose holder leads the log", lock("raft"), true],
  ["leadership", leadership("raft"), false],
  ["leadership, whose holder leads the log", leadership("raft"), true],
] as const;

test.each(defaults)("the default %s is another's within half a second", async (_name, take, isServer) => {
  const [, , most] = await measured(take, isServer, [1, 2]);
  expect(most).toBeLessThan(500);
});

test("so under more seeds, and the lock of elected-server takes longer", {
  tags: ["long"],
  timeout: 120_000,
}, async () => {
  for (const [, take, isServer] of defaults) expect((await measured(take, isServer))[2]).toBeLessThan(500);
  expect((await measured(lock("elected-server"), false))[0]).toBeGreaterThan(500);
});
