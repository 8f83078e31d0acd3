/**
 * A campaign over processes that share a queue on Redis, of which two are killed on the way: each seed once, and the summary is that of
 * one machine.
 *
 * @module-tag long
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, afterEach, expect, test } from "vitest";
import requireFreshBuild from "../../fresh-build.ts";
import { EngineServer, redisServer } from "./servers.ts";

const CLI = fileURLToPath(new URL("../../../dist/cli/coterie.js", import.meta.url));
const SEEDS = 20_000;

requireFreshBuild();
const folder = mkdtempSync(join(tmpdir(), "coterie-campaign-"));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true }));

function started(file: string, ...words: string[]) {
  const child = spawn(process.execPath, [CLI, "campaign", file, "--json", ...words], { cwd: folder });
  running.add(child);
  let stdout = "";
  child.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
  const code = new Promise<number | null>((resolve) => child.on("close", resolve));
  const summary = async (): Promise<string> => {
    expect([0, 1]).toContain(await code);
    const { seconds: _times, ...rest } = JSON.parse(stdout) as { seconds: number };
    return JSON.stringify(rest);
  };
  return { child, code, summary };
}

function fileOf(name: string, count: number): string {
  const file = join(folder, `${name}.json`);
  // Moves of walks are cheap, and some of these runs fail.
  const walk = { protocol: "bully", nodes: 3, steps: 12 };
  const chunk = Math.ceil(count / 200);
  writeFileSync(file, JSON.stringify({ name, chunk, seeds: { count }, experiments: [{ name: "walks", walk }] }));
  return file;
}

/** How many jobs are done. */
async function done(redis: Redis): Promise<number> {
  const [key] = await redis.keys("bull:campaign-*:completed");
  return key === undefined ? 0 : redis.zcard(key);
}

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await holds())) await sleep(20);
}

test(`${SEEDS} seeds over four processes of which two are killed: each once, and the summary of one machine`, async () => {
  const server = await EngineServer.start(redisServer);
  const redis = new Redis(server.port);
  try {
    const file = fileOf("killed", SEEDS);
    const alone = await started(file, "--out", "alone", "--workers", "2").summary();
    const words = ["--redis", `redis://127.0.0.1:${server.port}`, "--workers", "1"];
    const four = [1, 2, 3, 4].map((id) => started(file, "--out", `shared-${id}`, ...words));
    for (const [at, part] of [20, 60].entries()) {
      await until(async () => (await done(redis)) >= part);
      four[at]?.child.kill("SIGKILL");
    }
    for (const survivor of four.slice(2)) expect(await survivor.summary()).toBe(alone);
    expect(await four[0]?.code).toBeNull();
    expect(JSON.parse(alone)).toMatchObject({ runs: SEEDS });
  } finally {
    redis.disconnect();
    await server.kill();
  }
});

test("who is stopped gives its jobs back, and who comes later finds what is done", async () => {
  const server = await EngineServer.start(redisServer);
  const redis = new Redis(server.port);
  try {
    const file = fileOf("stopped", 2_000);
    const words = ["--redis", `redis://127.0.0.1:${server.port}`, "--workers", "2"];
    const first = started(file, "--out", "first", ...words);
    await until(async () => (await done(redis)) >= 5);
    first.child.kill("SIGINT");
    expect(await first.code).toBe(1);
    expect(await redis.llen((await redis.keys("bull:campaign-*:active"))[0] ?? "none")).toBe(0);
    const second = await started(file, "--out", "second", ...words).summary();
    expect(second).toBe(await started(file, "--out", "alone-2", "--workers", "1").summary());
    expect(await done(redis)).toBe(200);
  } finally {
    redis.disconnect();
    await server.kill();
  }
});

test("where Redis is killed, it is said to be away; Ctrl-C ends, and the rest is done once it is back", async () => {
  const server = await EngineServer.start(redisServer);
  const redis = new Redis(server.port);
  redis.on("error", () => {}); // It is killed.
  try {
    const file = fileOf("killed-redis", 20_000);
    const words = ["--redis", `redis://127.0.0.1:${server.port}`, "--workers", "1"];
    const [stopped, waiting] = [started(file, "--out", "gone-1", ...words), started(file, "--out", "gone-2", ...words)];
    let told = "";
    for (const { child } of [stopped, waiting]) child.stderr.on("data", (data: Buffer) => (told += data.toString()));
    await until(async () => (await done(redis)) >= 5);
    await server.kill();
    await until(() => told.includes("waiting for Redis, which does not answer"));
    stopped.child.kill("SIGINT");
    expect(await stopped.code).toBe(1);
    await server.start();
    expect(await waiting.summary()).toBe(await started(file, "--out", "alone-3", "--workers", "1").summary());
  } finally {
    redis.disconnect();
    await server.kill();
  }
});
