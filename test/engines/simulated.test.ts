/** The recipes over an engine in virtual time: their guarantees, and random faults. */
import { describe, expect, it, test } from "vitest";
import { type Grant, guard } from "../../src/index.ts";
import { conformance } from "./conformance.ts";
import { asListed, triedOn } from "./exceptions.ts";
import { outages } from "./outages.ts";
import { restores } from "./restores.ts";
import { SimulatedEngine } from "./simulated-engine.ts";
import { simulatedStage } from "./simulated-stage.ts";

describe("the simulated engine", () => {
  it.each(triedOn("simulated", conformance))("$name", async ({ name, check }) => {
    const engine = new SimulatedEngine(1);
    const stage = { join: () => engine.join(), spoil: (key: string, value: string) => engine.spoil(key, value) };
    await engine.run(() => asListed("simulated", name, check(stage)));
  });

  it.each(triedOn("simulated", outages))("$name", async ({ name, check }) => {
    const engine = new SimulatedEngine(1);
    await engine.run(() => asListed("simulated", name, check(simulatedStage(engine))));
  });

  it.each(triedOn("simulated", restores))("$name", async ({ name, check }) => {
    const engine = new SimulatedEngine(1);
    await engine.run(() => asListed("simulated", name, check(simulatedStage(engine))));
  });
});

test("an engine that is unavailable for less than a session: grants are kept", async () => {
  const engine = new SimulatedEngine(2);
  await engine.run(async () => {
    const member = await engine.join();
    const held = await member.mutex("m").acquire();
    engine.isDown = true;
    await engine.sleep(4_000);
    engine.isDown = false;
    await engine.sleep(20_000);
    expect(held.isHeld).toBe(true);
  });
});

test("an engine that is unavailable for longer: grants are lost before a session can end, and acquired again afterwards", async () => {
  const engine = new SimulatedEngine(3);
  await engine.run(async () => {
    const [a, b] = [await engine.join(), await engine.join()];
    const held = await a.mutex("m").acquire();
    const next = b.mutex("m").acquire();
    engine.isDown = true;
    const began = engine.time.now;
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    expect(engine.time.now - began).toBeLessThan(10_000);
    await engine.sleep(5_000);
    engine.isDown = false;
    expect((await next).token).toBeGreaterThan(held.token);
  });
});

test("an engine that is unavailable from the start: join() rejects with the reason", async () => {
  const engine = new SimulatedEngine(5);
  engine.isDown = true;
  await engine.run(async () => {
    await expect(engine.join({ timeoutMs: 3_000 })).rejects.toMatchObject({
      code: "no-endpoint",
      message: "simulated did not open a session within 3000 ms: no answer",
      cause: { code: "engine-unavailable", message: "simulated: no answer" },
    });
  });
});

test("an engine that loses its sessions: holders learn of it, and no call hangs", async () => {
  const engine = new SimulatedEngine(4);
  await engine.run(async () => {
    const [a, b] = [await engine.join(), await engine.join()];
    const held = await a.mutex("m").acquire();
    const next = b.mutex("m").acquire();
    engine.forgetSessions();
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    expect((await next).isHeld).toBe(true);
    await a.leave();
  });
});

test("a watch reports the changes before an unreadable value, and then that value; other watches continue", async () => {
  const engine = new SimulatedEngine(6);
  await engine.run(async () => {
    const member = await engine.join();
    const [map, other] = [member.map<number>("spoilt"), member.map<number>("other")];
    const [watch, elsewhere] = [map.watch(), other.watch()];
    const [first, there] = [watch.next(), elsewhere.next()];
    await map.put("x", 1);
    await other.put("x", 1);
    expect([(await first).value, (await there).value]).toMatchObject([{ value: 1 }, { value: 1 }]);
    const rest = [watch.next(), watch.next()] as const;
    const next = elsewhere.next();
    await map.put("x", 2);
    await engine.spoil("m/spoilt/y", "junk");
    const after = await map.put("x", 3);
    expect((await rest[0]).value).toMatchObject({ value: 2 });
    await expect(rest[1]).rejects.toMatchObject({ code: "bad-operation" });
    await other.put("x", 2);
    expect((await next).value).toMatchObject({ value: 2 });
    const again = map.watch({ after });
    const last = again.next();
    await map.put("x", 4);
    expect((await last).value).toMatchObject({ value: 4 });
  });
});

/**
 * Three processes increment a counter under a lock with a guard, while processes and engine are paused and answers are
 * lost.
 */
async function fencedCounter(seed: number): Promise<{ count: number; stale: number }> {
  const engine = new SimulatedEngine(seed);
  const draw = engine.random;
  let count = 0;
  let stale = 0;
  let isMended = false;
  await engine.run(async () => {
    const processes = [0, 1, 2].map(() => ({ isUp: true }));
    const members = await Promise.all(processes.map((process) => engine.join({ sessionMs: 3_000 }, process)));
    engine.faults = { unheard: 0.05, unanswered: 0.1, delayMs: [0.2, 40] };
    const accept = guard();
    const inside = new Set<Grant>();
    const work = members.map(async (member, at) => {
      while (!isMended) {
        const lock = await member
          .mutex("count")
          .acquire()
          .catch(() => null);
        if (lock === null) continue;
        if (lock.isHeld) {
          inside.add(lock);
          expect([...inside].filter(({ isHeld }) => isHeld)).toHaveLength(1);
          await engine.sleep(draw.between(0, 50));
          if (!lock.isHeld || !processes[at]?.isUp) stale += 1;
          else {
            accept(lock.token);
            count += 1;
          }
          inside.delete(lock);
        }
        await lock.release();
      }
    });
    for (let round = 0; round < 12; round++) {
      await engine.sleep(draw.between(500, 4_000));
      const process = processes[Math.floor(draw.between(0, 3))] as { isUp: boolean };
      if (round % 3 === 0) process.isUp = false;
      else engine.isDown = true;
      await engine.sleep(draw.between(500, 6_000));
      process.isUp = true;
      engine.isDown = false;
    }
    isMended = true;
    engine.faults = { unheard: 0, unanswered: 0, delayMs: [0.2, 2] };
    await Promise.all(work);
    await Promise.all(members.map((member) => member.leave()));
  });
  return { count, stale };
}

test.each([11, 12, 13])("random faults never let two hold a lock: seed %i", async (seed) => {
  expect((await fencedCounter(seed)).count).toBeGreaterThan(20);
});

test("increments whose answers are lost are applied once, or reported as unknown", async () => {
  const engine = new SimulatedEngine(5);
  await engine.run(async () => {
    const members = [await engine.join(), await engine.join()];
    engine.faults = { unheard: 0.1, unanswered: 0.3, delayMs: [0.2, 20] };
    let done = 0;
    let unknown = 0;
    for (let round = 0; round < 60; round++) {
      const results = await Promise.allSettled(members.map((member) => member.counter("c").add()));
      for (const result of results) {
        if (result.status === "fulfilled") done += 1;
        else unknown += 1;
      }
    }
    engine.faults = { unheard: 0, unanswered: 0, delayMs: [0.2, 2] };
    const value = await (members[0] as (typeof members)[0]).counter("c").get();
    expect(value).toBeGreaterThanOrEqual(done);
    expect(value).toBeLessThanOrEqual(done + unknown);
    expect(done).toBeGreaterThan(60);
  });
});
