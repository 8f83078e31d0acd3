/**
 * Checks an engine that does not answer, or rejects calls. Callers get the reason, and the engine gets no more calls
 * after a caller has given up.
 */
import { expect, test } from "vitest";
import { SimulatedEngine } from "./simulated-engine.ts";

test("an unavailable engine gets no more calls for reads that have timed out", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const [member, other] = [await engine.join(), await engine.join()];
    const watch = member.map("m").watch({ after: 1 });
    const change = watch.next();
    engine.isDown = true;
    const reads = Array.from({ length: 50 }, () => [
      member.map("m").get("k", { timeoutMs: 50 }),
      member.map("m").range({ timeoutMs: 50 }),
      member.counter("c").get({ timeoutMs: 50 }),
      member.transaction((transaction) => transaction.get(member.map("m"), "k"), { timeoutMs: 50 }),
    ]).flat();
    const codes = await Promise.all(
      reads.map((read) => read.catch((error: unknown) => (error as { code: string }).code)),
    );
    expect(new Set(codes)).toEqual(new Set(["request-timeout"]));
    await watch.return?.();
    await change;
    await engine.sleep(5_000);
    const before = engine.calls;
    await engine.sleep(2_000);
    expect(engine.calls - before).toBeLessThan(40); // Only the calls for two sessions.
    engine.isDown = false;
    await engine.sleep(1_000);
    await Promise.all([member.leave(), other.leave()]);
  });
});

test("a call that times out while an engine rejects calls reports the reason, until the engine accepts changes again", async () => {
  const engine = new SimulatedEngine(2);
  await engine.run(async () => {
    const [member, other] = [await engine.join(), await engine.join()];
    engine.refusal = "OOM command not allowed";
    const why = "a call to simulated failed: OOM command not allowed";
    const cause = { code: "engine-unavailable", message: "simulated: OOM command not allowed" };
    await expect(member.map("m").put("k", 1, { timeoutMs: 1_500 })).rejects.toMatchObject({
      code: "request-timeout",
      message: `the write of "k" in the map "m" was not answered within 1500 ms: ${why}; it may have taken effect, or may still take effect`,
      cause,
    });
    await expect(member.mutex("x").acquire({ timeoutMs: 1_500 })).rejects.toMatchObject({
      code: "acquire-timeout",
      message: `the lock "x" was not acquired within 1500 ms: ${why}`,
      cause,
    });
    expect(member.hasSession).toBe(true);
    engine.refusal = null;
    await member.map("m").put("k", 1);
    const held = await other.mutex("x").acquire();
    const late = await member
      .mutex("x")
      .acquire({ timeoutMs: 500 })
      .catch((error: unknown) => error);
    expect(late).toMatchObject({ message: 'the lock "x" was not acquired within 500 ms' });
    await held.release();
  });
});

test("a call that times out while an engine is unavailable reports that", async () => {
  const engine = new SimulatedEngine(3);
  await engine.run(async () => {
    const member = await engine.join({ sessionMs: 4_000 });
    engine.isDown = true;
    await engine.sleep(6_000);
    await expect(member.map("m").get("k", { timeoutMs: 3_000 })).rejects.toMatchObject({
      message:
        'the read of "k" in the map "m" was not answered within 3000 ms: simulated does not answer; a call to simulated failed: no answer; it had no effect',
    });
  });
});
