/** What is promised while the engine itself is paused, killed and started again. */
import { expect } from "vitest";
import type { EngineMember } from "../../../src/index.ts";
import { fencedCounter } from "./fenced-counter.ts";
import type { Served } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export interface Outage {
  readonly name: string;
  check(stage: OutageStage): Promise<void>;
}

export interface OutageStage {
  /** As `realEngines` name it. */
  readonly engine: string;
  readonly server: Served;
  /** Another process. @param ports at which it finds the engine, if not at its own. */
  join(sessionMs: number, ports?: readonly number[]): Promise<EngineMember>;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** So that none is left that was not there during a cut. */
async function useAllConnections(member: EngineMember): Promise<void> {
  await Promise.all(Array.from({ length: 16 }, (_, at) => member.counter(`connection ${at}`).get()));
}

export const outages: readonly Outage[] = [
  {
    name: "keeps a lock while the engine is paused, and killed and started again, for less than a session",
    async check({ server, join }) {
      const member = await join(20_000);
      const held = await member.mutex("outage").acquire();
      const { token } = held;
      await server.pause();
      await sleep(1_000);
      server.resume();
      await server.kill();
      const killedAt = performance.now(); // A session counts from before it was asked for, and for nine tenths.
      await server.start();
      await expect.poll(() => held.deadline, { timeout: 60_000 }).toBeGreaterThan(killedAt + 18_000);
      expect([held.isHeld, held.token]).toEqual([true, token]);
      const next = (await join(20_000)).mutex("outage").acquire();
      await held.release();
      expect((await next).token).toBeGreaterThan(token);
    },
  },
  {
    name: "ends what is held before a session can, where the engine is away for longer",
    async check({ server, join }) {
      const held = await (await join(3_000)).mutex("long outage").acquire();
      const next = (await join(3_000)).mutex("long outage").acquire();
      await server.kill();
      const killedAt = performance.now();
      await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
      expect(held.deadline).toBeLessThanOrEqual(killedAt + 3_000);
      await server.start();
      expect((await next).token).toBeGreaterThan(held.token);
    },
  },
  {
    name: "keeps a lock while its connections are cut for less than a session, and reset",
    async check({ server, join }) {
      const proxy = await TcpProxy.start(server.ports[0] as number);
      const member = await join(20_000, [proxy.port]);
      const held = await member.mutex("cut").acquire();
      await useAllConnections(member);
      const { token } = held;
      proxy.cut();
      await sleep(1_000);
      proxy.heal();
      const healedAt = performance.now();
      await expect.poll(() => held.deadline, { timeout: 60_000 }).toBeGreaterThan(healedAt + 18_000);
      proxy.reset();
      const resetAt = performance.now();
      await expect.poll(() => held.deadline, { timeout: 60_000 }).toBeGreaterThan(resetAt + 18_000);
      expect([held.isHeld, held.token]).toEqual([true, token]);
      const next = (await join(20_000)).mutex("cut").acquire();
      await held.release();
      expect((await next).token).toBeGreaterThan(token);
      await proxy.close();
    },
  },
  {
    name: "ends what is held before others get it, where a process is cut off for longer, and has it again afterwards",
    async check({ server, join }) {
      const proxy = await TcpProxy.start(server.ports[0] as number);
      const [cutOff, other] = [await join(3_000, [proxy.port]), await join(3_000)];
      const held = await cutOff.mutex("long cut").acquire();
      await useAllConnections(cutOff);
      const next = other.mutex("long cut").acquire();
      const heldAtNext = next.then(() => held.isHeld);
      proxy.cut();
      const cutAt = performance.now();
      await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
      expect(held.deadline).toBeLessThanOrEqual(cutAt + 3_000);
      expect((await next).token).toBeGreaterThan(held.token);
      expect(await heldAtNext).toBe(false);
      proxy.heal();
      const again = cutOff.mutex("long cut").acquire({ timeoutMs: 60_000 });
      await (await next).release();
      expect((await again).token).toBeGreaterThan((await next).token);
      await proxy.close();
    },
  },
  {
    name: "loses and doubles no increment, and takes no stale token, while processes and the engine are killed, paused and cut off from each other",
    async check({ engine, server }) {
      const { value, accepted, stale, kills } = await fencedCounter(engine, server);
      expect(value).toBe(accepted);
      expect(Math.min(...stale)).toBeGreaterThanOrEqual(1);
      expect([kills, accepted > 20]).toEqual([2, true]);
    },
  },
];
