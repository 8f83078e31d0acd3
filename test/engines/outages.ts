/** Guarantees while the engine is paused, killed and restarted, and while processes are cut off from it. */
import { expect } from "vitest";
import type { EngineMember } from "../../src/index.ts";
import { type Away, type Counted, eventually, type Network, type Time } from "./fenced-counter.ts";

export interface Outage {
  readonly name: string;
  check(stage: OutageStage): Promise<void>;
}

export interface OutageStage extends Time {
  readonly server: Away;
  /** Joins from another process. */
  join(sessionMs: number): Promise<EngineMember>;
  /** Joins from a process with its own network, which the test can cut. */
  joinBehind(sessionMs: number): Promise<{ readonly member: EngineMember; readonly network: Network }>;
  /** Runs `fencedCounter` with three processes. */
  count(): Promise<Counted>;
}

/** Uses every connection of the pool, so that all of them exist during the next cut. */
async function useAllConnections(member: EngineMember): Promise<void> {
  await Promise.all(Array.from({ length: 16 }, (_, at) => member.counter(`connection ${at}`).get()));
}

/**
 * Resolves when the signal is aborted. It may already be aborted, if the machine was paused for a session before this
 * call.
 */
async function isOver(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
}

export const outages: readonly Outage[] = [
  {
    name: "keeps a lock while the engine is paused or restarted for less than a session",
    async check(stage) {
      const { server, join, sleep, now } = stage;
      const member = await join(20_000);
      const held = await member.mutex("outage").acquire();
      const { token } = held;
      await server.pause();
      await sleep(1_000);
      server.resume();
      await server.kill();
      const killedAt = now(); // A deadline is nine tenths of a session after the request that renewed it.
      await server.start();
      await eventually(stage, "to be confirmed", () => (held.deadline ?? 0) > killedAt + 18_000);
      expect([held.isHeld, held.token]).toEqual([true, token]);
      const next = (await join(20_000)).mutex("outage").acquire();
      await held.release();
      expect((await next).token).toBeGreaterThan(token);
    },
  },
  {
    name: "ends grants before their session can expire if the engine is unavailable for longer",
    async check({ server, join, now }) {
      const held = await (await join(3_000)).mutex("long outage").acquire();
      const next = (await join(3_000)).mutex("long outage").acquire();
      await server.kill();
      const killedAt = now();
      await isOver(held.signal);
      expect(held.deadline).toBeLessThanOrEqual(killedAt + 3_000);
      await server.start();
      expect((await next).token).toBeGreaterThan(held.token);
    },
  },
  {
    name: "keeps a lock while its connections are reset, or cut for less than a session",
    async check(stage) {
      const { join, joinBehind, sleep, now } = stage;
      const { member, network } = await joinBehind(20_000);
      const held = await member.mutex("cut").acquire();
      await useAllConnections(member);
      const { token } = held;
      network.cut();
      await sleep(1_000);
      network.heal();
      const healedAt = now();
      await eventually(stage, "to be confirmed again", () => (held.deadline ?? 0) > healedAt + 18_000);
      network.reset();
      const resetAt = now();
      await eventually(stage, "to be confirmed once more", () => (held.deadline ?? 0) > resetAt + 18_000);
      expect([held.isHeld, held.token]).toEqual([true, token]);
      const next = (await join(20_000)).mutex("cut").acquire();
      await held.release();
      expect((await next).token).toBeGreaterThan(token);
    },
  },
  {
    name: "ends grants before others acquire them if a process is cut off for longer, and lets it acquire them again afterwards",
    async check({ join, joinBehind, now }) {
      const { member: cutOff, network } = await joinBehind(3_000);
      const other = await join(3_000);
      const held = await cutOff.mutex("long cut").acquire();
      await useAllConnections(cutOff);
      const next = other.mutex("long cut").acquire();
      const heldAtNext = next.then(() => held.isHeld);
      network.cut();
      const cutAt = now();
      await isOver(held.signal);
      expect(held.deadline).toBeLessThanOrEqual(cutAt + 3_000);
      expect((await next).token).toBeGreaterThan(held.token);
      expect(await heldAtNext).toBe(false);
      network.heal();
      const again = cutOff.mutex("long cut").acquire({ timeoutMs: 60_000 });
      await (await next).release();
      expect((await again).token).toBeGreaterThan((await next).token);
    },
  },
  {
    name: "neither loses nor repeats an increment nor accepts a stale token while processes and the engine are killed, paused and partitioned",
    async check({ count }) {
      const { value, accepted, stale, kills } = await count();
      expect(value).toBe(accepted);
      expect(Math.min(...stale)).toBeGreaterThanOrEqual(1);
      expect([kills, accepted > 20]).toEqual([2, true]);
    },
  },
];
