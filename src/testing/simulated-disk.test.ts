import { describe, expect, test } from "vitest";
import { random } from "../core/random.ts";
import { SimulatedDisk } from "./simulated-disk.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { VirtualTime } from "./virtual-time.ts";

function machine(seed = 1) {
  const time = new VirtualTime();
  const chance = random(seed);
  const disk = new SimulatedDisk({}, chance);
  const begin = (): SimulatedProcess => new SimulatedProcess(time, { speed: 1, aheadMs: 0 }, chance.stream("process"));
  const run = <T>(body: () => Promise<T>): Promise<T> => time.drive(body, 1e6);
  return { time, disk, begin, run };
}

const fill = (length: number, byte: number): Buffer => Buffer.alloc(length, byte);

describe("a simulated disk", () => {
  test("keeps synced data, and any part of unsynced data", async () => {
    const lengths = new Set<number>();
    let holes = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const { disk, begin, run } = machine(seed);
      const held = await run(async () => {
        const before = begin();
        const folder = await disk.of(before).claim("data");
        const file = await folder.create("journal");
        await file.write(fill(700, 1), 0);
        await file.sync();
        await file.write(fill(5_000, 2), 700);
        before.die();
        disk.losePower();
        const again = await (await disk.of(begin()).claim("data")).open("journal");
        return again === null ? null : again.readAll();
      });
      expect(held?.subarray(0, 700)).toEqual(fill(700, 1));
      lengths.add(held?.length ?? 0);
      if (held?.subarray(700).includes(0)) holes += 1;
    }
    expect(lengths.has(700)).toBe(true);
    expect(lengths.has(5_700)).toBe(true);
    expect(lengths.size).toBeGreaterThan(4);
    expect(holes).toBeGreaterThan(0);
  });

  test("may lose a file that was never synced", async () => {
    const outcomes = new Set<boolean>();
    for (let seed = 1; seed <= 20; seed++) {
      const { disk, begin, run } = machine(seed);
      const file = await run(async () => {
        const before = begin();
        await (await disk.of(before).claim("data")).create("journal");
        before.die();
        disk.losePower();
        return (await disk.of(begin()).claim("data")).open("journal");
      });
      outcomes.add(file === null);
    }
    expect(outcomes).toEqual(new Set([true, false]));
  });

  test("may undo unsynced overwrites and truncations, in order", async () => {
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= 60; seed++) {
      const { disk, begin, run } = machine(seed);
      const held = await run(async () => {
        const before = begin();
        const file = await (await disk.of(before).claim("data")).create("journal");
        await file.write(fill(4, 1), 0);
        await file.sync();
        await file.truncate(2);
        const syncing = file.sync();
        await file.write(fill(1, 2), 0);
        await syncing;
        await file.truncate(1);
        await file.write(fill(1, 3), 2);
        before.die();
        disk.losePower();
        return (await (await disk.of(begin()).claim("data")).open("journal"))?.readAll();
      });
      outcomes.add([...(held ?? [])].join(" "));
    }
    expect([...outcomes].sort()).toEqual(["1 1", "2", "2 0 3", "2 1"]);
  });

  test("keeps everything that a killed process has written", async () => {
    const { disk, begin, run } = machine();
    const held = await run(async () => {
      const before = begin();
      const file = await (await disk.of(before).claim("data")).create("journal");
      await file.write(fill(3_000, 7), 0);
      before.die();
      const again = await (await disk.of(begin()).claim("data")).open("journal");
      return again?.readAll();
    });
    expect(held).toEqual(fill(3_000, 7));
  });

  test("allows one writer per folder: a living process, paused or not", async () => {
    const { disk, begin, run } = machine();
    await run(async () => {
      const first = begin();
      await disk.of(first).claim("data");
      first.pause();
      await expect(disk.of(begin()).claim("data")).rejects.toMatchObject({ code: "journal-in-use" });
      first.die();
      await disk.of(begin()).claim("data");
    });
  });

  test("takes time for a sync, and fails it on request", async () => {
    const { time, disk, begin, run } = machine();
    await run(async () => {
      const file = await (await disk.of(begin()).claim("data")).create("journal");
      await file.write(fill(10, 1), 0);
      const began = time.now;
      await file.datasync();
      expect(time.now - began).toBeGreaterThanOrEqual(0.2);
      disk.failNext("EIO");
      await expect(file.datasync()).rejects.toMatchObject({ code: "EIO", syscall: "fdatasync" });
      await file.datasync();
    });
  });
});
