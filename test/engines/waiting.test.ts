/** The holder and the waiters of an engine's lock, as all processes see them. */
import { expect, test } from "vitest";
import type { Service } from "../../src/cluster/services/state/service.ts";
import { SimulatedEngine } from "./simulated-engine.ts";

test("a disconnected waiter does not count", async () => {
  const engine = new SimulatedEngine(1);
  await engine.run(async () => {
    const process = { isUp: true };
    const holding = { isUp: true };
    const [a, b, c] = [await engine.join({}, holding), await engine.join({}, process), await engine.join()];
    const held = await a.mutex("m").acquire();
    const waits = [b.mutex("m").acquire(), b.mutex("m").acquire({ timeoutMs: 60_000 })].map((wait) =>
      wait.catch(() => null),
    );
    const { service } = c as unknown as { service: Service };
    const waiting = async (): Promise<number> =>
      (await service.query({ type: "holders", name: "mutex/m" })).answer.waiting;
    await engine.sleep(100);
    expect(await waiting()).toBe(2);
    process.isUp = false;
    await engine.sleep(3_000);
    holding.isUp = false; // A running holder would delete the entries of disconnected waiters.
    await engine.sleep(7_500);
    expect(await waiting()).toBe(0);
    holding.isUp = true;
    process.isUp = true;
    await held.release();
    await b.leave();
    await Promise.all(waits);
  });
});
