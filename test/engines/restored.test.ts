/**
 * Checks the recipes over an engine that was restored to an earlier state, in virtual time: the reasons that callers
 * get, and rare cases.
 */
import { expect, test } from "vitest";
import type { Service } from "../../src/cluster/services/state/service.ts";
import { type EngineMember, guard } from "../../src/index.ts";
import { SimulatedEngine } from "./simulated-engine.ts";

const WHY = /the engine was restored to an earlier state, such as from a backup/;

async function put(member: EngineMember, count: number): Promise<void> {
  for (let at = 0; at < count; at++) await member.map("m").put("k", at);
}

test("grants, leaderships and watches that end because of a restore report that reason", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const member = await engine.join();
    const before = engine.backUp();
    const lock = await member.mutex("m").acquire();
    const over = new AbortController();
    const lost = new Promise<unknown>((resolve) => {
      const lead = ({ signal }: { signal: AbortSignal }): Promise<void> =>
        new Promise((end) => {
          signal.addEventListener("abort", () => {
            resolve(signal.reason);
            end();
          });
        });
      member
        .election("chief")
        .lead(lead, { signal: over.signal })
        .catch(() => {});
    });
    const watch = member.map("m").watch({ after: await member.map("m").put("k", 1) });
    const change = watch.next();
    await engine.sleep(1_000);
    engine.restore(before);
    await expect(change).rejects.toMatchObject({ code: "compacted", message: expect.stringMatching(WHY) });
    await engine.sleep(100);
    const reason = { code: "grant-lost", phase: "lost", message: expect.stringMatching(WHY) };
    expect(lock.signal.reason).toMatchObject(reason);
    expect(await lost).toMatchObject(reason);
    over.abort();
  });
});

test("a session of the backup is over once one renewal of it is answered, and no renewal counts after the restore", async () => {
  const engine = new SimulatedEngine(2);
  await engine.run(async () => {
    const member = await engine.join({ sessionMs: 30_000 });
    await engine.sleep(100);
    const before = engine.backUp();
    const lock = await member.mutex("m").acquire();
    const deadline = lock.deadline as number;
    engine.restore(before);
    let latest = deadline;
    lock.onDeadline((until) => (latest = until));
    await engine.sleep(10_500); // Renewals come every third of a session.
    expect([lock.isHeld, latest]).toEqual([false, deadline]);
  });
});

test("a process without grants and watches gets a new session a third of a session after a restore", async () => {
  const engine = new SimulatedEngine(6);
  await engine.run(async () => {
    const member = await engine.join({ sessionMs: 30_000 });
    const { service } = member as unknown as { service: Service };
    await engine.sleep(100);
    const before = engine.backUp();
    await put(member, 3);
    const { session } = service;
    engine.restore(before);
    await engine.sleep(10_500);
    expect(member.hasSession).toBe(true);
    expect(service.session).not.toBe(session);
  });
});

test("a restore that lost one change is detected by the change that gets its revision", async () => {
  const engine = new SimulatedEngine(7);
  await engine.run(async () => {
    const member = await engine.join();
    const before = engine.backUp();
    const lost = await member.map("m").put("k", 1);
    const lock = member.mutex("m");
    const watch = member.map("m").watch({ after: lost });
    const change = watch.next().catch((error: unknown) => error);
    await engine.sleep(10);
    engine.restore(before);
    expect(await member.map("m").put("k", 2)).toBe(lost);
    expect(await change).toMatchObject({ code: "compacted" });
    expect((await lock.acquire()).isHeld).toBe(true);
  });
});

test("a holder learns that a fail-over lost its grant, even if its session survived and others have written more than was lost", async () => {
  const engine = new SimulatedEngine(3);
  await engine.run(async () => {
    const process = { isUp: true, isCutOff: false };
    const [a, b] = [await engine.join({}, process), await engine.join()];
    await engine.sleep(100);
    const before = engine.backUp();
    const held = await a.mutex("m").acquire();
    process.isCutOff = true;
    engine.restore(before);
    await put(b, 20);
    process.isCutOff = false;
    const next = await b.mutex("m").acquire();
    await engine.sleep(5_000); // Half of a session. Members check every third of one.
    expect([held.isHeld, next.isHeld]).toEqual([false, true]);
  });
});

test("a process that did not notice a restore gets its next lock in a new session, once another process has detected the restore", async () => {
  const engine = new SimulatedEngine(4);
  await engine.run(async () => {
    const [a, b] = [await engine.join(), await engine.join()];
    const before = engine.backUp();
    await put(a, 5);
    engine.restore(before);
    await put(a, 20);
    const held = await b.mutex("m").acquire();
    await engine.sleep(20_000);
    expect(held.isHeld).toBe(true);
  });
});

test("a process that joins after a restore gets higher tokens, also after several restores of one backup", async () => {
  const engine = new SimulatedEngine(5);
  await engine.run(async () => {
    const first = await engine.join();
    await first.mutex("m").use(() => {});
    const before = engine.backUp();
    await first.leave();
    const accept = guard();
    for (let round = 0; round < 3; round++) {
      const member = await engine.join();
      for (let grants = 0; grants < 10; grants++) await member.mutex("m").use(({ token }) => accept(token));
      await member.leave();
      await engine.sleep(2_500);
      engine.restore(before);
    }
  });
});

/** Three processes take turns with a lock, while the engine repeatedly loses the last seconds of changes. */
async function tokens(seed: number): Promise<{ granted: number; restores: number }> {
  const engine = new SimulatedEngine(seed);
  const draw = engine.random;
  let granted = 0;
  let restores = 0;
  await engine.run(async () => {
    const members = await Promise.all([0, 1, 2].map(() => engine.join({ sessionMs: 5_000 })));
    const accept = guard();
    let isOver = false;
    const work = members.map(async (member) => {
      while (!isOver) {
        const lock = await member.mutex("m").acquire();
        accept(lock.token); // Throws if a token is lower than one before.
        granted += 1;
        await engine.sleep(draw.between(0, 200));
        await lock.release();
        await member.map("m").put("k", granted);
      }
    });
    for (; restores < 5; restores++) {
      const before = engine.backUp();
      await engine.sleep(draw.between(0, 8_000));
      engine.isDown = true;
      await engine.sleep(draw.between(2_500, 6_000));
      engine.restore(before);
      engine.isDown = false;
      await engine.sleep(draw.between(0, 6_000));
    }
    isOver = true;
    await Promise.all(work);
  });
  return { granted, restores };
}

test.each([21, 22])("tokens grow over random restores: seed %i", async (seed) => {
  const { granted, restores } = await tokens(seed);
  expect(restores).toBe(5);
  expect(granted).toBeGreaterThan(50);
});
