/**
 * Each engine as Debian packages it: what is promised, while it is killed, paused and started again.
 * @module-tag long
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EngineMember, join } from "../../../src/index.ts";
import { conformance } from "../conformance.ts";
import { exceptions } from "../exceptions.ts";
import { runExample } from "./docs-examples.ts";
import { realEngines } from "./engines.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { fencedCounter } from "./fenced-counter.ts";
import { EngineServer } from "./servers.ts";

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(realEngines)("$name", ({ name, title, server: kind, engine }) => {
  let server: EngineServer;
  const members: EngineMember[] = [];
  const joined = async (sessionMs = 10_000): Promise<EngineMember> => {
    const member = await join({ engine: engine(server.ports), sessionMs, timeoutMs: 30_000 });
    members.push(member);
    return member;
  };
  beforeAll(async () => {
    server = await EngineServer.start(kind); // Which fails where the package is not installed.
  });
  afterAll(async () => {
    await Promise.all(members.map((member) => member.leave()));
    await server?.remove();
  });

  it.each(conformance)("$name", async ({ name: promise, check }) => {
    const exception = exceptions.find((each) => each.engine === name && each.promise === promise);
    const checked = check({ join: () => joined(), sleep });
    if (exception === undefined) await checked;
    else await expect(checked).rejects.toThrow(exception.error);
  });

  it("runs the example of its page as it is printed", async () => {
    const { printed, expected } = await runExample(title, server.port);
    expect(printed).toBe(expected);
    expect(expected).not.toBe("");
  });

  it("keeps a lock while the engine is paused, and killed and started again, for less than a session", async () => {
    const member = await joined();
    const held = await member.mutex("outage").acquire();
    const { token } = held;
    server.pause();
    await sleep(1_000);
    server.resume();
    await server.kill();
    await server.start();
    const deadline = held.deadline;
    await expect.poll(() => held.deadline, { timeout: 20_000 }).toBeGreaterThan(deadline as number);
    expect([held.isHeld, held.token]).toEqual([true, token]);
    const next = (await joined()).mutex("outage").acquire();
    await held.release();
    expect((await next).token).toBeGreaterThan(token);
  });

  it("ends what is held before a session can, where the engine is away for longer", async () => {
    const member = await joined(3_000);
    const held = await member.mutex("long outage").acquire();
    const next = (await joined(3_000)).mutex("long outage").acquire();
    await server.kill();
    const killedAt = performance.now();
    await new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    expect(held.deadline).toBeLessThanOrEqual(killedAt + 3_000);
    await server.start();
    expect((await next).token).toBeGreaterThan(held.token);
  });

  it("loses and doubles no increment while processes and the engine are killed and paused", async () => {
    const { value, accepted, kills } = await fencedCounter(name, server);
    expect(value).toBe(accepted);
    expect([kills, accepted > 20]).toEqual([2, true]);
  });
});

describe("etcd of three servers", () => {
  let cluster: EtcdCluster;
  beforeAll(async () => {
    cluster = await EtcdCluster.start();
  });
  afterAll(() => cluster?.remove());

  it("loses and doubles no increment while processes and its leader are killed and paused", async () => {
    const { value, accepted, kills } = await fencedCounter("etcd", cluster);
    expect(value).toBe(accepted);
    expect([kills, accepted > 20]).toEqual([2, true]);
  });

  it("keeps a lock while its leader is killed", async () => {
    const engine = realEngines.find(({ name }) => name === "etcd")?.engine(cluster.ports);
    if (engine === undefined) throw new Error("no engine etcd");
    const member = await join({ engine, sessionMs: 20_000, timeoutMs: 30_000 });
    const held = await member.mutex("leader").acquire();
    await cluster.kill();
    const killedAt = performance.now(); // A session counts from before it was asked for, and for nine tenths.
    await expect.poll(() => held.deadline, { timeout: 60_000 }).toBeGreaterThan(killedAt + 18_000);
    expect(held.isHeld).toBe(true);
    await cluster.start();
    await member.leave();
  });
});
