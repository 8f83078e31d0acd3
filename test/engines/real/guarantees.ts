/**
 * Tests the guarantees of a real engine, packaged by Debian, while it is killed, paused and restarted. Each engine has
 * its own test file.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EngineMember, join } from "../../../src/index.ts";
import { conformance } from "../conformance.ts";
import { asListed, triedOn } from "../exceptions.ts";
import { fencedCounter } from "../fenced-counter.ts";
import { outages } from "../outages.ts";
import { restores } from "../restores.ts";
import type { EngineCluster } from "./cluster.ts";
import { realCounting, realTime } from "./counting.ts";
import { type RealEngine, realEngines } from "./engines.ts";
import { type ForeignWrite, foreignWrites } from "./foreign-writes.ts";
import { RestoredServer } from "./restored-server.ts";
import { EngineServer } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

function engineNamed(name: string): RealEngine {
  const found = realEngines.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no engine ${name}`);
  return found;
}

export function triesGuarantees(name: string): void {
  const { server: kind, engine } = engineNamed(name);
  describe(name, () => {
    let server: EngineServer;
    const members: EngineMember[] = [];
    const proxies: TcpProxy[] = [];
    const joined = async (sessionMs = 10_000, ports = server.ports): Promise<EngineMember> => {
      const member = await join({ engine: engine(ports), sessionMs, timeoutMs: 30_000 });
      members.push(member);
      return member;
    };
    const spoil = (key: string, value: string): Promise<void> =>
      (foreignWrites[name] as ForeignWrite)(server.port, key, value);
    beforeAll(async () => {
      server = await EngineServer.start(kind); // Fails if the package is not installed.
    });
    afterAll(async () => {
      await Promise.all(members.map((member) => member.leave()));
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await server?.remove();
    });

    it.each(triedOn(name, conformance))("$name", ({ name: promise, check }) =>
      asListed(name, promise, check({ join: () => joined(), spoil })),
    );

    it.each(triedOn(name, outages))("$name", ({ name: promise, check }) =>
      asListed(
        name,
        promise,
        check({
          ...realTime,
          server,
          join: joined,
          async joinBehind(sessionMs) {
            const proxy = await TcpProxy.start(server.port);
            proxies.push(proxy);
            return { member: await joined(sessionMs, [proxy.port]), network: proxy };
          },
          count: () => fencedCounter(realCounting(name, server)),
        }),
      ),
    );

    it("keeps its guarantees when the server is restored from a backup", async () => {
      const restored = await RestoredServer.start(kind, engine);
      try {
        await Promise.all(
          triedOn(name, restores).map(({ name: promise, check }, _at, all) =>
            asListed(name, promise, restored.during(check, all.length)),
          ),
        );
      } finally {
        await restored.remove();
      }
    });
  });
}

/** How long a session lasts: longer than the takeover from a killed leader, even on a busy machine. */
const SESSION_MS = 120_000;

export function triesClusterGuarantees(name: string, start: () => Promise<EngineCluster>): void {
  describe(`${name} of three servers`, () => {
    let cluster: EngineCluster;
    beforeAll(async () => {
      cluster = await start();
    });
    afterAll(() => cluster?.remove());

    it("neither loses nor repeats an increment nor accepts a stale token while processes and the leader are killed, paused and partitioned", async () => {
      const { value, accepted, stale, kills } = await fencedCounter(realCounting(name, cluster));
      expect(value).toBe(accepted);
      expect(Math.min(...stale)).toBeGreaterThanOrEqual(1);
      expect([kills, accepted > 20]).toEqual([2, true]);
    });

    it("keeps a lock while its leader is killed", async () => {
      const engine = engineNamed(name).engine(cluster.ports);
      const member = await join({ engine, sessionMs: SESSION_MS, timeoutMs: 30_000 });
      const held = await member.mutex("leader").acquire();
      await cluster.kill();
      const killedAt = performance.now(); // A deadline is nine tenths of a session after the request that renewed it.
      await expect.poll(() => (held.deadline ?? 0) > killedAt + 0.9 * SESSION_MS || !held.isHeld).toBe(true);
      expect(held.isHeld).toBe(true);
      await cluster.start();
      await member.leave();
    });
  });
}
