/**
 * The data in an engine is bounded in bytes: older changes are discarded, and too large values are rejected.
 * @module-tag long
 */
import { writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EngineMember, join } from "../../../src/index.ts";
import { PATIENCE_MS } from "../../patience.ts";
import { realEngines } from "./engines.ts";
import { EngineServer, etcdServer, natsServer, type ServerKind } from "./servers.ts";

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no error",
    (error: unknown) => (error as { code?: unknown }).code,
  );

/** @param kind its server, if it is not the usual one */
function started(name: string, kind?: ServerKind, sessionMs = 10_000) {
  const real = realEngines.find((each) => each.name === name);
  if (real === undefined) throw new Error(`no engine ${name}`);
  let server: EngineServer;
  const members: EngineMember[] = [];
  const another = async (): Promise<EngineMember> => {
    const member = await join({ engine: real.engine(server.ports), sessionMs, timeoutMs: 30_000 });
    members.push(member);
    return member;
  };
  beforeAll(async () => {
    server = await EngineServer.start(kind ?? real.server);
    await another();
  });
  afterAll(async () => {
    await Promise.all(members.map((member) => member.leave()));
    await server?.remove();
  });
  return Object.assign(() => members[0] as EngineMember, {
    another,
    server: () => server,
  });
}

const withFewSteps = (folder: string, port: number): string[] => [...etcdServer.args(folder, port), "--max-txn-ops=4"];

describe.each(["redis", "postgres"])("%s", (name) => {
  const member = started(name);

  it("discards older changes before they take more than 16 MiB, and keeps later ones", async () => {
    const map = member().map<string>("large");
    const first = await map.put("x", "");
    const revisions: number[] = [];
    for (let at = 0; at < 20; at++) revisions.push(await map.put("x", String(at).padEnd(1_000_000, "-")));
    expect(await codeOf(map.watch({ after: first }).next())).toBe("compacted");
    const watch = map.watch({ after: revisions[9] as number });
    const seen: number[] = [];
    for await (const change of watch) {
      seen.push(change.revision);
      if (change.revision === revisions.at(-1)) break;
    }
    expect(seen).toEqual(revisions.slice(10));
  });
});

describe("etcd", () => {
  const member = started("etcd", { ...etcdServer, args: withFewSteps });
  const put = (keys: number, length: number): Promise<unknown> =>
    member().transaction(
      (transaction) => {
        const map = member().map<string>("large");
        for (let at = 0; at < keys; at++) transaction.put(map, `key ${at}`, "-".repeat(length));
        return Promise.resolve();
      },
      { timeoutMs: PATIENCE_MS },
    );

  it("rejects too large values and too many steps with an error that is never uncertain", async () => {
    expect(await codeOf(put(2, 900_000))).toBe("too-large");
    expect(await codeOf(put(8, 900_000))).toBe("too-large");
    expect(await codeOf(put(10, 1))).toBe("too-large");
    expect(await codeOf(put(3, 1))).toBe("no error");
  });
});

describe("nats", () => {
  const member = started("nats");

  /** Writes values until nothing else fits. */
  async function fill(): Promise<void> {
    const map = member().map<string>("large");
    let key = 0;
    for (let length = 900_000; length >= 1; length = Math.floor(length / 2)) {
      while ((await codeOf(map.put(`key ${key}`, "-".repeat(length)))) === "no error") key += 1;
    }
  }

  it("grants a lock to waiters on a full engine, whether the lock is released or its holder crashed", async () => {
    const lock = member().readWriteLock("page");
    const other = await member.another();
    const writer = await lock.write();
    const readers = Array.from({ length: 40 }, () => lock.read());
    // Requests of one process for one name are sent in order, so all of them wait now.
    expect(await codeOf(lock.read({ timeoutMs: 500 }))).toBe("acquire-timeout");
    await other.mutex("of another").acquire();
    const next = member().mutex("of another").acquire();
    expect(await codeOf(member().mutex("of another").acquire({ timeoutMs: 500 }))).toBe("acquire-timeout");
    await fill();

    expect(await codeOf(member().mutex("one more").acquire())).toBe("state-full");
    await writer.release(); // Recording each reader as a holder takes more space than the writer's release frees.
    const reading = await Promise.all(readers);
    expect(reading.map(({ isHeld }) => isHeld)).toEqual(Array(40).fill(true));
    for (const each of reading) await each.release();
    await other.leave();
    expect((await next).isHeld).toBe(true);
    expect(await codeOf(member().map<string>("large").put("key 0", "short"))).toBe("no error");
  });
});

describe("nats without room on its disk", () => {
  let limit = "4MB";
  const kind = {
    ...natsServer,
    args(folder: string, port: number) {
      const file = joinPath(folder, "nats.conf");
      const jetstream = `jetstream { store_dir: "${folder}", max_file_store: ${limit} }`;
      writeFileSync(file, `listen: 127.0.0.1:${port}\n${jetstream}\n`);
      return ["--config", file];
    },
  };
  const member = started("nats", kind, 2_000);

  it("reports it, grants no lock that another process may hold, and works again once there is space", async () => {
    const held = await member().mutex("lock").acquire();
    const other = await member.another();
    const next = other.mutex("lock").acquire();
    const map = member().map<string>("large");
    let failed: unknown = null;
    for (let at = 0; failed === null && at < 100; at++)
      await map.put("key", String(at).padEnd(300_000, "-")).catch((error: unknown) => (failed = error));
    expect(failed).toMatchObject({ code: "state-full", message: expect.stringMatching(/JetStream has no room/) });
    await expect.poll(() => held.isHeld).toBe(false);
    limit = "400MB";
    await member.server().kill();
    await member.server().start();
    expect((await next).token).toBeGreaterThan(held.token);
    expect(await codeOf(map.put("key", "short"))).toBe("no error");
  });
});
