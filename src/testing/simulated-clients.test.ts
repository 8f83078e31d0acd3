/** Checks clients in a simulated world: shared state, and the faults that affect clients. */
import { describe, expect, test } from "vitest";
import type { Client } from "../client/client.ts";
import { simulate, type World } from "./world.ts";

const three = (seed = 1, more = {}): World => simulate({ members: 3, seed, ...more });

async function until(world: World, isSo: () => boolean): Promise<void> {
  for (const end = world.now() + 10_000; !isSo() && world.now() < end; ) await world.sleep(10);
  expect(isSo()).toBe(true);
}

describe("a client of a world", () => {
  test("shares state with members, and moves to another when its own is killed", async () => {
    const world = three();
    await world.run(async () => {
      const client = await world.connect({ members: [2] });
      expect(world.clients).toEqual([1_000]);
      expect(client.status()).toMatchObject({ member: 2 });
      await world.member(1).map<number>("stock").put("apples", 3);
      expect(await client.map<number>("stock").get("apples")).toBe(3);
      const lock = await client.mutex("invoice").acquire();
      world.kill(2);
      await until(world, () => client.status().moves === 1);
      expect(lock.isHeld).toBe(true); // The session belongs to the client, not to a member.
      await client.close();
      expect((await world.member(1).mutex("invoice").acquire()).token).toBeGreaterThan(lock.token);
    });
  });

  test.each([
    ["is killed", (world: World, id: number) => world.kill(id)],
    ["loses its power", (world: World, id: number) => world.crash(id)],
    ["is cut off", (world: World, id: number) => world.partition([id], [1, 2, 3])],
    ["stands still", (world: World, id: number) => world.pause(id)],
  ])("that %s loses its lock to another, which gets a higher token", async (_how, befalls) => {
    const world = three(3);
    await world.run(async () => {
      const client = await world.connect({ machine: 1_007 });
      const lock = await client.mutex("invoice").acquire();
      befalls(world, 1_007);
      const next = await world.member(1).mutex("invoice").acquire();
      expect(next.token).toBeGreaterThan(lock.token);
      world.resume(1_007);
      await world.sleep(50);
      if (world.log.some((line) => /paused|partition/.test(line))) expect(lock.isHeld).toBe(false);
    });
  });

  test("whose process has ended may be replaced by another on its machine", async () => {
    const world = three();
    await world.run(async () => {
      const first = await world.connect({ machine: 1_000 });
      await expect(world.connect({ machine: 1_000 })).rejects.toMatchObject({ code: "already-running" });
      await expect(world.connect({ machine: 3 })).rejects.toThrow(/a whole number of at least 1000/);
      const [{ client: number }] = [first.status()];
      world.crash(1_000);
      const second = await world.connect({ machine: 1_000 });
      expect(second.status().client).not.toBe(number);
      expect(await second.counter("visits").add(2)).toBe(2);
    });
  });

  test("connects without a time limit if there is none, and until its signal is aborted", async () => {
    const world = three();
    await world.run(async () => {
      for (const id of [1, 2, 3]) world.kill(id);
      const stop = new AbortController();
      const stopped = world.connect({ timeoutMs: Number.POSITIVE_INFINITY, signal: stop.signal });
      const waiting = world.connect({ timeoutMs: Number.POSITIVE_INFINITY });
      await world.sleep(60_000);
      const reason = new Error("stopped");
      stop.abort(reason);
      await expect(stopped).rejects.toBe(reason);
      await Promise.all([1, 2, 3].map((id) => world.restart(id)));
      const client = await waiting;
      expect(await client.counter("visits").add(1)).toBe(1);
      await client.close();
    });
  });

  test("is closed by its signal, once it has connected", async () => {
    const world = three();
    await world.run(async () => {
      const stop = new AbortController();
      const client = await world.connect({ signal: stop.signal });
      const lock = await client.mutex("invoice").acquire();
      stop.abort();
      await until(world, () => client.signal.aborted);
      expect(client.signal.reason).toMatchObject({ code: "client-closed" });
      await until(world, () => !lock.isHeld);
    });
  });

  test("reaches all members while they are cut from each other", async () => {
    const world = three();
    await world.run(async () => {
      const client = await world.connect({ members: [1], discover: false });
      await client.map("stock").put("a", 1);
      world.partition([1], [2, 3]);
      await expect(client.map("stock").put("a", 2, { timeoutMs: 500 })).rejects.toMatchObject({
        code: "request-timeout",
      });
      expect(client.status().member).toBe(1);
      const other = await world.connect({ members: [2] });
      await other.map("stock").put("b", 2);
    });
  });

  test("is paused and loses its links under random faults, and equal seeds give equal runs", async () => {
    const run = async (): Promise<[readonly string[], number]> => {
      const world = three(5, { faults: { kinds: ["pause", "cut", "lossy"], forMs: 4_000 } });
      const added: number[] = [];
      await world.run(async () => {
        const clients: Client[] = await Promise.all([world.connect(), world.connect()]);
        const count = async (client: Client): Promise<void> => {
          for (let n = 0; n < 20; n++) {
            await client
              .counter("all")
              .add(1, { timeoutMs: 20_000 })
              .then((sum) => added.push(sum));
            await world.sleep(200);
          }
        };
        await Promise.all(clients.map(count));
        await Promise.all(clients.map((client) => client.close()));
      });
      expect(added.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, at) => at + 1));
      return [world.log, world.digest];
    };
    const first = await run();
    expect(first[0].filter((line) => /fault: .*100[01]/.test(line)).length).toBeGreaterThan(0);
    expect(await run()).toEqual(first);
  });
});

describe("a full disk", () => {
  test("ends the member that writes, and acknowledged data is there once it has space and the process runs again", async () => {
    const world = three();
    await world.run(async () => {
      const stock = world.member(1).map<number>("stock");
      await stock.put("apples", 3);
      const full = world.member(3);
      world.fillDisk(3);
      await stock.put("apples", 4);
      await until(world, () => full.signal.aborted);
      expect(full.signal.reason).toMatchObject({ code: "member-failed" });
      world.kill(3);
      await expect(world.restart(3)).rejects.toThrow(/ENOSPC/); // A member must write to its disk when it joins.
      expect(world.isUp(3)).toBe(false);
      world.freeDisk(3);
      await until(world, () => world.isUp(3));
      expect(await world.member(3).map<number>("stock").get("apples")).toBe(4);
    });
  });

  test("also occurs at random, and ends with the process restarted", async () => {
    const world = three(1, { faults: { kinds: ["full-disk"], forMs: 3_000 } });
    expect(world.plan.map(({ kind }) => kind)).toContain("full-disk");
    await world.run(async () => {
      let written = 0;
      for (const end = world.now() + 7_000; world.now() < end; await world.sleep(50)) {
        const up = world.members.filter((id) => world.isUp(id) && !world.member(id).signal.aborted);
        const by = up[written % Math.max(1, up.length)];
        const putting = by === undefined ? null : world.member(by).counter("all").add(1, { timeoutMs: 500 });
        written += (await putting?.then(() => 1).catch(() => 0)) ?? 0;
      }
      await Promise.all(world.members.map((id) => world.member(id).ready()));
      expect(await world.member(2).counter("all").get()).toBeGreaterThanOrEqual(written);
      expect(world.log.some((line) => line.includes("ENOSPC"))).toBe(true);
    });
  });
});
