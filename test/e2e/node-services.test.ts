/**
 * The examples of docs/node-services.md do what they say: one schedules, all share settings, and a replica that ends gives back what it holds.
 *
 * @module-tag long
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, expect, test } from "vitest";
import { onFreePorts } from "../network/free-ports.ts";
import { until } from "./cluster-under-test.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** As users run them: it reads the tsconfig.json of the folder, which NestJS needs. */
const TSX = new URL("../../node_modules/tsx/dist/esm/index.mjs", import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), "coterie-services-"));
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Replica {
  readonly child: ChildProcess;
  readonly url: string;
  readonly exited: Promise<number | null>;
  schedules(): boolean;
}

async function replicasOf(source: string): Promise<Replica[]> {
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
  return urls.map((url, at) => {
    const child = spawn(process.execPath, ["--import", TSX, "service.mts", String(at + 1)], {
      cwd: own,
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(child);
    let said = "";
    child.stdout?.on("data", (data: Buffer) => (said += data.toString()));
    const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { child, url, exited, schedules: () => said.includes("schedules under token") };
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

test.each(examples)("%s: one schedules, all see the settings, and shutting down hands over", async (source) => {
  const replicas = await replicasOf(source);
  for (const replica of replicas) await until("every replica is ready", async () => (await isReady(replica)) || null);
  const [one, two, three] = replicas as [Replica, Replica, Replica];
  await until("a setting is put", async () => (await put(one, "blue").catch(() => false)) || null);
  for (const replica of replicas) await until("all see it", async () => (await sees(replica, "blue")) || null);
  const tokens: number[] = [];
  for (const { url } of replicas) {
    const answer = await fetch(`${url}/job`, { method: "POST" });
    tokens.push(((await answer.json()) as { token: number }).token);
  }
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));

  const first = await until("one schedules", () => replicas.find((replica) => replica.schedules()) ?? null);
  first.child.kill("SIGTERM");
  const code = await first.exited;
  expect([0, null]).toContain(code); // NestJS ends by the signal itself, after its hooks.
  const others = [one, two, three].filter((replica) => replica !== first);
  const second = await until("another schedules", () => others.find((replica) => replica.schedules()) ?? null);
  second.child.kill("SIGKILL");
  const [last] = others.filter((replica) => replica !== second) as [Replica];
  await until("the last has no majority, and is not ready", async () => ((await isReady(last)) ? null : true));
});
