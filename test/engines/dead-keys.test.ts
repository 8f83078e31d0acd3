/** Keys whose session has ended: no call returns them, and some process deletes them. */
import { expect, test } from "vitest";
import type { EngineMember } from "../../src/index.ts";
import { SimulatedEngine } from "./simulated-engine.ts";

async function lease(member: EngineMember, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => member.map("services").put(key, "up", { leased: true, timeoutMs: 60_000 })));
}

const named = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}${String(at).padStart(4, "0")}`);

test("a watch reports the end of a leased key after a thousand that stay", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const [staying, going] = [await engine.join(), await engine.join()];
    await lease(staying, named("a", 1_000));
    const process = { isUp: true };
    const crashing = await engine.join({}, process);
    const watch = staying.map("services").watch({ key: "z" });
    const told = [watch.next(), watch.next(), watch.next(), watch.next()];
    await engine.sleep(1_000);
    for (const each of [crashing, going]) {
      await each.map("services").put("z", "up", { leased: true });
      await engine.sleep(1_000);
      process.isUp = false;
      if (each === going) await going.leave();
      await engine.sleep(30_000);
    }
    const types = (await Promise.all(told)).map(({ value }) => value.type);
    expect(types).toEqual(["put", "delete", "put", "delete"]);
  });
});

test("a range continues after keys whose sessions have ended, as of one revision, and deletes them", async () => {
  const engine = new SimulatedEngine(2);
  await engine.run(async () => {
    const process = { isUp: true };
    const [crashing, staying] = [await engine.join({}, process), await engine.join()];
    await lease(crashing, named("i", 1_050));
    const after = await staying.map("services").put("z", "up", { leased: true });
    process.isUp = false;
    await engine.sleep(30_000);
    const few = await staying.map("services").range({ limit: 2 });
    expect(few).toMatchObject({ entries: [{ key: "z", revision: after }], more: false });
    await engine.sleep(2_000);
    expect([engine.keys("m/"), engine.keys("l/")]).toEqual([["m/services/z"], ["l/m/services/z"]]);
    expect(await staying.map("services").range()).toMatchObject({ entries: [{ key: "z" }], more: false });
  });
});

test("a range that continues reports that there are more entries, and returns as many as requested", async () => {
  const engine = new SimulatedEngine(3);
  await engine.run(async () => {
    const process = { isUp: true };
    const [crashing, staying] = [await engine.join({}, process), await engine.join()];
    await lease(crashing, named("i", 5));
    await lease(staying, named("k", 10));
    process.isUp = false;
    await engine.sleep(30_000);
    const { entries, more } = await staying.map("services").range({ limit: 3 });
    expect([entries.map(({ key }) => key), more]).toEqual([named("k", 3), true]);
  });
});

test("a range that continues while others write never contains a part of one change", async () => {
  const engine = new SimulatedEngine(4);
  await engine.run(async () => {
    const process = { isUp: true };
    const [crashing, writing, reading] = [await engine.join({}, process), await engine.join(), await engine.join()];
    process.isUp = false;
    await engine.sleep(30_000);
    let isOver = false;
    const map = writing.map<number>("services");
    const work = (async () => {
      for (let writes = 0; !isOver; writes++) {
        await writing.transaction((transaction) => {
          for (const key of ["a", "z"]) transaction.put(map, key, writes);
        });
        await engine.sleep(engine.random.between(1, 20));
      }
    })();
    const pairs = [];
    for (let round = 0; round < 50; round++) {
      for (const key of named("i", 10)) await engine.spoil(`m/services/${key}`, `${crashing.id} w "up"`);
      const { entries, revision } = await reading.map<number>("services").range({ limit: 2 });
      pairs.push(entries.map(({ value }) => value));
      for (const entry of entries) expect(entry.revision).toBeLessThanOrEqual(revision);
    }
    isOver = true;
    await work;
    for (const [a, z] of pairs) if (z !== undefined) expect(z).toBe(a);
    expect(pairs.filter(([, z]) => z !== undefined).length).toBeGreaterThan(10);
  });
});

test("a member that leaves deletes its leased keys", async () => {
  const engine = new SimulatedEngine(5);
  await engine.run(async () => {
    const member = await engine.join();
    const map = member.map("services");
    await lease(member, named("i", 50));
    await map.put("stays", "up");
    await map.put("i0000", "stays as well");
    await member.leave();
    expect(engine.keys("m/")).toEqual(["m/services/i0000", "m/services/stays"]);
  });
});

test("a leased key is rewritten by the same and by another process, and is deleted with the last one's session", async () => {
  const engine = new SimulatedEngine(6);
  await engine.run(async () => {
    const [a, b] = [await engine.join(), await engine.join()];
    await a.map("services").put("k", 1, { leased: true });
    await a.map("services").put("k", 2, { leased: true });
    await b.map("services").put("k", 3, { leased: true });
    await a.leave();
    expect(await b.map("services").get("k")).toBe(3);
    await b.leave();
    expect([engine.keys("m/"), engine.keys("l/")]).toEqual([[], []]);
  });
});
