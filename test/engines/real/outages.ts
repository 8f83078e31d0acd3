/** What is promised while the engine itself is paused, killed and started again. */
import { expect } from "vitest";
import type { EngineMember } from "../../../src/index.ts";
import { fencedCounter } from "./fenced-counter.ts";
import type { Served } from "./servers.ts";

export interface Outage {
  readonly name: string;
  check(stage: OutageStage): Promise<void>;
}

export interface OutageStage {
  /** As `realEngines` name it. */
  readonly engine: string;
  readonly server: Served;
  /** Another process. */
  join(sessionMs: number): Promise<EngineMember>;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

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
    name: "loses and doubles no increment while processes and the engine are killed and paused",
    async check({ engine, server }) {
      const { value, accepted, kills } = await fencedCounter(engine, server);
      expect(value).toBe(accepted);
      expect([kills, accepted > 20]).toEqual([2, true]);
    },
  },
];
