/**
 * Checks that the examples of docs/guide/frameworks.md work as described: exactly one replica runs the schedule, all
 * share settings, and a replica that ends releases its grants.
 *
 * @module-tag long
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, expect, test } from "vitest";
import { onFreePorts } from "../network/free-ports.ts";
import { TSX, until } from "./cluster-under-test.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "coterie-services-"));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Replica {
  readonly id: number;
  readonly child: ChildProcess;
  readonly url: string;
  readonly exited: Promise<number | null>;
}

/** A report that a replica has run the schedule. */
interface Tick {
  readonly id: number;
  readonly token: number;
}

/** @returns a function that starts a replica by number, 1 to 3, and the ticks of all replicas as they arrive */
async function serviceOf(source: string): Promise<{ start: (id: number) => Replica; ticks: readonly Tick[] }> {
  const own = join(folder, basename(source, ".ts"));
  mkdirSync(join(own, "node_modules"), { recursive: true });
  for (const name of ["fastify", "@nestjs", "reflect-metadata", "rxjs"])
    symlinkSync(join(ROOT, "node_modules", name), join(own, "node_modules", name));
  symlinkSync(ROOT, join(own, "node_modules", "coterie"));
  const program = await onFreePorts(readFileSync(join(ROOT, source), "utf8"));
  writeFileSync(join(own, "service.mts"), program);
  writeFileSync(join(own, "tsconfig.json"), JSON.stringify({ compilerOptions: { experimentalDecorators: true } }));
  const urls = [...(/const http.*/.exec(program)?.[0] ?? "").matchAll(/127\.0\.0\.1:\d+/g)].map(
    ([at]) => `http://${at}`,
  );
  expect(urls).toHaveLength(3);
  const ticks: Tick[] = [];
  const start = (id: number): Replica => {
    const child = spawn(process.execPath, ["--import", TSX, "service.mts", String(id)], {
      cwd: own,
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(child);
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [, token] = /runs the schedule under token (\d+)$/.exec(line) ?? [];
      if (token !== undefined) ticks.push({ id, token: Number(token) });
    });
    const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { id, child, url: urls[id - 1] as string, exited };
  };
  return { start, ticks };
}

const IN_A_ROW = 5;

/**
 * Waits until one replica runs the schedule repeatedly and alone, and returns its tick. Leadership may move before that
 * if all replicas are slow.
 */
function whoSchedulesAlone(ticks: readonly Tick[]): Promise<Tick> {
  const from = ticks.length;
  return until("exactly one member schedules", () => {
    const last = ticks.slice(from).slice(-IN_A_ROW);
    const [first] = last;
    if (first === undefined || last.length < IN_A_ROW) return null;
    return last.every(({ id, token }) => id === first.id && token === first.token) ? first : null;
  });
}

const isReady = ({ url }: Replica): Promise<boolean> =>
  fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

async function put({ url }: Replica, value: string): Promise<boolean> {
  const isNest = (await fetch(`${url}/settings`)).headers.get("x-powered-by") !== null;
  const headers = { "content-type": isNest ? "application/json" : "text/plain" };
  const body = isNest ? JSON.stringify({ value }) : value;
  return (await fetch(`${url}/settings/color`, { method: "PUT", headers, body })).ok;
}

const sees = ({ url }: Replica, value: string): Promise<boolean> =>
  fetch(`${url}/settings`)
    .then((answer) => answer.json())
    .then(
      (settings) => (settings as { color?: string }).color === value,
      () => false,
    );

const examples = ["examples/service.ts", ...frameworks()];

function frameworks(): string[] {
  return readdirSync(join(ROOT, "examples/frameworks")).map((name) => `examples/frameworks/${name}`);
}

test.each(examples)(
  "%s: exactly one replica runs the schedule, all see the settings, and another continues when it ends",
  async (source) => {
    const { start, ticks } = await serviceOf(source);
    const replicas = [1, 2, 3].map(start);
    for (const replica of replicas) await until("every replica is ready", async () => (await isReady(replica)) || null);
    const [one] = replicas as [Replica, Replica, Replica];
    await until("a setting is put", async () => (await put(one, "blue").catch(() => false)) || null);
    for (const replica of replicas) await until("all see it", async () => (await sees(replica, "blue")) || null);
    const tokens: number[] = [];
    for (const { url } of replicas) {
      const answer = await fetch(`${url}/job`, { method: "POST" });
      tokens.push(((await answer.json()) as { token: number }).token);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));

    const alive = new Map(replicas.map((replica) => [replica.id, replica]));
    const ended = async ({ id }: Tick, signal: "SIGTERM" | "SIGKILL"): Promise<number | null> => {
      const { child, exited } = alive.get(id) as Replica;
      alive.delete(id);
      child.kill(signal);
      return exited;
    };
    const first = await whoSchedulesAlone(ticks);
    expect([0, null]).toContain(await ended(first, "SIGTERM")); // After its hooks, NestJS ends by the signal itself.
    const second = await whoSchedulesAlone(ticks);
    alive.set(first.id, start(first.id));
    await until("the stopped member is back", async () => (await isReady(alive.get(first.id) as Replica)) || null);
    const killed = await whoSchedulesAlone(ticks);
    await ended(killed, "SIGKILL");
    const last = await whoSchedulesAlone(ticks);
    expect(first.id).not.toBe(second.id);
    expect(killed.id).not.toBe(last.id);
    expect(first.token < second.token && second.token <= killed.token && killed.token < last.token).toBe(true);
    const owners = new Set(ticks.map(({ id, token }) => `${id} ${token}`));
    expect(owners.size).toBe(new Set(ticks.map(({ token }) => token)).size); // No two under one token.

    await ended(last, "SIGKILL");
    const [lonely] = alive.values();
    await until("the last has no majority", async () => ((await isReady(lonely as Replica)) ? null : true));
  },
);
