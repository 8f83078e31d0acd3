import { execFileSync } from "node:child_process";
import { setTimeout as realSleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { logOf } from "../../test/testing/contended-world.ts";
import { simulate } from "./index.ts";

const path = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));
const LOCK = "invoice";

describe("a world", () => {
  test("has members of join(), which lose locks that they cannot keep, and get successors", async () => {
    const world = simulate({ members: 3, seed: 7 });
    await world.run(async () => {
      const lock = await world.member(1).mutex(LOCK).acquire();
      world.partition([1], [2, 3]);
      const next = await world.member(2).mutex(LOCK).acquire();
      expect(lock.isHeld).toBe(false);
      expect(next.token).toBeGreaterThan(lock.token);
      world.heal();
      await next.release();
      await world
        .member(1)
        .mutex(LOCK)
        .use(() => {});
    });
  });

  test("equal seeds give equal runs, byte for byte, in this process and in another", async () => {
    const here = await logOf(3);
    expect(here).toMatch(/fault: /);
    expect(await logOf(3)).toBe(here);
    expect(await logOf(4)).not.toBe(here);
    const command = [
      "--import",
      path("node_modules/tsx/dist/loader.mjs"),
      path("test/testing/contended-world.ts"),
      "3",
    ];
    expect(execFileSync(process.execPath, command, { encoding: "utf8" })).toBe(here);
  });

  test("takes no real time: ten minutes pass in a moment", async () => {
    const world = simulate({ members: 1, seed: 1 });
    await world.run(600_000);
    expect(world.now()).toBeGreaterThanOrEqual(600_000);
  });

  test("stops between runs; sleep() outside of a run is a run", async () => {
    const world = simulate({ members: 1, seed: 1 });
    await world.sleep(100);
    const { events } = world;
    await realSleep(20);
    expect(world.events).toBe(events);
    await world.sleep(100);
    expect(world.events).toBeGreaterThan(events);
  });

  test("a failure names its seed and the command that replays it", async () => {
    const world = simulate({ members: 1, seed: 17 });
    const run = world.run(() => expect(1).toBe(2));
    await expect(run).rejects.toThrow(/Seed 17\. Replay: COTERIE_SEED=17 npx vitest run src\/testing\/world\.test\.ts/);
  });

  test("a run that waits for something real ends with an explanation", async () => {
    const world = simulate({ members: 2, seed: 1 });
    const end = new AbortController();
    const run = world.run(() => realSleep(60_000, undefined, { signal: end.signal }), { limitMs: 5_000 });
    await expect(run).rejects.toThrow(/outside this world \(in progress in this process: .*Timeout.*sleep\(\)/s);
    end.abort();
  });

  test("an error of a program ends the run", async () => {
    const world = simulate({
      members: 2,
      seed: 1,
      async program({ id }, { sleep }) {
        await sleep(10);
        if (id === 2) throw new Error("a mistake in the program");
      },
    });
    await expect(world.run(100)).rejects.toThrow("a mistake in the program");
  });
});

describe("a member", () => {
  test("that crashes runs no more code: its promises never settle, and its program starts again with the next process", async () => {
    const seen: string[] = [];
    const world = simulate({
      members: 3,
      seed: 5,
      async program({ id }, { sleep, now }) {
        if (id !== 2) return;
        seen.push(`begins at ${now() < 100}`);
        await sleep(1_000);
        seen.push("has slept");
      },
    });
    await world.run(async () => {
      const waiting = world.member(2).mutex(LOCK).acquire();
      let isSettled = false;
      void waiting.finally(() => {
        isSettled = true;
      });
      world.crash(2);
      expect(world.isUp(2)).toBe(false);
      expect(() => world.member(2)).toThrow(/await restart\(2\)/);
      await world.sleep(3_000);
      expect(isSettled).toBe(false);
      const again = await world.restart(2);
      expect(world.member(2)).toBe(again);
      await again.mutex(LOCK).use(() => {});
      await world.sleep(2_000);
    });
    expect(seen).toEqual(["begins at true", "begins at true", "has slept"]);
  });

  test("that is paused gets a successor; when it resumes, its lock is lost before its code can rely on it", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      const lock = await world.member(1).mutex(LOCK).acquire();
      world.pause(1);
      const next = await world.member(2).mutex(LOCK).acquire();
      world.resume(1);
      expect(lock.signal.aborted).toBe(true);
      expect(next.isHeld).toBe(true);
    });
  });

  test("whose disk is wiped has lost its journal, and the others refuse it", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      await world.sleep(500);
      world.crash(3);
      world.wipe(3);
      const alone = await world.restart(3);
      await world.sleep(1_000);
      expect(alone.status().hasQuorum).toBe(false);
      expect(world.log.join("\n")).toMatch(/journal/);
    });
  });

  test("that has left may be restarted at once; a running one must be ended first", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      expect(() => world.restart(1)).toThrow(/it is running: kill\(1\) or crash\(1\) first/);
      const before = world.member(1);
      await before.leave();
      const again = await world.restart(1);
      expect(again).not.toBe(before);
      await again.counter("visits").add(1);
    });
  });

  test("that joined later is the first to restart, once all were down", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      await world.add(4);
      for (const id of world.members) world.kill(id);
      await Promise.all([4, 1, 2, 3].map((id) => world.restart(id)));
      await world.member(4).counter("visits").add(1);
    });
  });

  test("whose disk fails, fails, and reports nothing more", async () => {
    const world = simulate({ members: 3, seed: 2 });
    await world.run(async () => {
      world.failDisk(2);
      const waits = world
        .member(2)
        .election("report")
        .lead(() => world.sleep(60_000));
      await expect(waits).rejects.toMatchObject({ code: "member-failed" });
      expect(world.member(2).status().state).toBe("failed");
    });
  });

  test("with a clock that is 2 % too fast waits 2 % less", async () => {
    const slept: number[] = [];
    const world = simulate({
      members: 2,
      seed: 1,
      drift: { 2: 1.02 },
      async program({ id }, { sleep }) {
        const began = world.now();
        await sleep(10_000);
        slept[id] = world.now() - began;
      },
    });
    await world.run(11_000);
    expect(slept[1]).toBeCloseTo(10_000, -1);
    expect(slept[2]).toBeCloseTo(10_000 / 1.02, -1);
  });

  test("whose messages are lost in one direction is suspected only at that end", async () => {
    const world = simulate({ members: 3, seed: 4 });
    await world.run(async () => {
      world.cut(1, 2);
      await world.sleep(2_000);
      const suspects = (id: number): readonly number[] =>
        world
          .member(id)
          .status()
          .peers.flatMap((peer) => (peer.suspected ? [peer.id] : []));
      expect(suspects(2)).toEqual([1]);
      expect(suspects(3)).toEqual([]);
    });
  });
});
