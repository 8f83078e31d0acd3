/** What members say of names when it cannot arrive: links that are full or cut, and a receiver that starts again meanwhile. */
import { expect, test } from "vitest";
import type { NodeId } from "../../core/protocol.ts";
import { simulate, type World } from "../../testing/index.ts";
import type { Mutex } from "./api.ts";

const IDS: readonly NodeId[] = [1, 2, 3];
const HEALED_MS = 10_000;

const algorithms = (world: World) =>
  IDS.map((id) => {
    const { instances } = world.member(id).status();
    return instances.find(({ name }) => name === "stock")?.algorithm ?? null;
  });
const lockAt = (world: World, id: NodeId, algorithm: "elected-server" | "ricart-agrawala"): Mutex =>
  world.member(id).mutex("stock", { algorithm });

/** Nothing gets to member 2, and what the others have sent it is as much as their links take. */
async function fillLinksTo2(world: World): Promise<void> {
  const feeds = IDS.map((id) => world.member(id).channel<string>("feed", { order: "fifo" }));
  await world.sleep(1_000);
  for (const id of [1, 3]) world.cut(id, 2);
  for (const feed of [feeds[0], feeds[2]]) for (let i = 0; i < 3; i++) feed?.send("x".repeat(40_000)).catch(() => {}); // A sender may be left out.
  await world.sleep(100);
  const queued = [1, 3].map(
    (id) =>
      world
        .member(id)
        .status()
        .peers.find((peer) => peer.id === 2)?.queuedBytes ?? 0,
  );
  expect(Math.min(...queued)).toBeGreaterThan(64 * 1024);
}

test("a member that is refused while links to it are full is told so once they take messages again", () => {
  const world = simulate({ members: IDS, seed: 1, join: { limits: { maxQueueBytes: 64 * 1024 } } });
  return world.run(async () => {
    await fillLinksTo2(world);
    const { signal } = await lockAt(world, 1, "elected-server").acquire();
    const refused = lockAt(world, 2, "ricart-agrawala").acquire();
    const how = refused.catch((error: unknown) => (error as { code: string }).code);
    await world.sleep(500);
    expect(algorithms(world)).toEqual(["elected-server", "ricart-agrawala", "elected-server"]);
    world.heal();
    expect(await how).toBe("instance-refused");
    await world.sleep(HEALED_MS);
    expect(algorithms(world)).toEqual(["elected-server", null, "elected-server"]);
    expect(signal.aborted).toBe(false);
  });
});

/** What was meant for the run before is lost with it: a member that has just started says so, and is told anew. */
test("a member that was started again while an announcement was on its way to it runs the name all the same", () => {
  const world = simulate({ members: IDS, seed: 1 });
  return world.run(async () => {
    await world.sleep(1_000); // All links are there, and know that run of member 2.
    for (const id of [1, 3]) world.cut(id, 2);
    const options = { rejoins: true };
    const asked = world.member(1).mutex("stock", { algorithm: "ricart-agrawala", options }).acquire();
    await world.sleep(100);
    expect(algorithms(world)).toEqual(["ricart-agrawala", null, "ricart-agrawala"]);
    world.kill(2);
    const restarted = world.restart(2);
    await world.sleep(1_000);
    world.heal();
    await restarted;
    await world.sleep(HEALED_MS);
    expect(algorithms(world)).toEqual(["ricart-agrawala", "ricart-agrawala", "ricart-agrawala"]);
    expect(await asked).toMatchObject({ isHeld: true });
  });
});
