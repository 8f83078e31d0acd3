/**
 * The examples of docs/node-services.md do what they say: one schedules and no other, all share settings, and a replica that ends gives back
 * what it holds.
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
  readonly id: number;
  readonly child: ChildProcess;
  readonly url: string;
  readonly exited: Promise<number | null>;
  /** Under which token it did each of what was due. */
  ticks(): number[];
}

/** @returns starts the one of that number, 1 to 3 */
async function serviceOf(source: string): Promise<(id: number) => Replica> {
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
  return (id) => {
    const child = spawn(process.execPath, ["--import", TSX, "service.mts", String(id)], {
      cwd: own,
      stdio: ["ignore", "pipe", "inherit"],
    });
    running.add(child);
    let said = "";
    child.stdout?.on("data", (data: Buffer) => (said += data.toString()));
    const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
    const ticks = (): number[] => [...said.matchAll(/ under token (\d+)\n/g)].map(([, token]) => Number(token));
    return { id, child, url: urls[id - 1] as string, exited, ticks };
  };
}

/** Of these, as soon as it has done what is due. */
const whoSchedules = (replicas: readonly Replica[]): Promise<Replica> =>
  until("one schedules", () => replicas.find((replica) => replica.ticks().length > 0) ?? null);

/** @returns its token: while it does what is due five times more, no other does anything. */
async function schedulesAlone(leader: Replica, others: readonly Replica[]): Promise<number> {
  const before = others.map((other) => other.ticks().length);
  const due = leader.ticks().length + 5;
  await until(`member ${leader.id} does what is due`, () => leader.ticks().length >= due || null);
  expect(others.map((other) => other.ticks().length)).toEqual(before);
  expect(new Set(leader.ticks()).size).toBe(1);
  return leader.ticks()[0] as number;
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
  "%s: one schedules and no other, all see the settings, and another goes on when it ends",
  async (source) => {
    const start = await serviceOf(source);
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

    const first = await whoSchedules(replicas);
    const others = replicas.filter((replica) => replica !== first);
    const firstToken = await schedulesAlone(first, others);
    expect(others.map((other) => other.ticks())).toEqual([[], []]);

    first.child.kill("SIGTERM");
    const code = await first.exited;
    expect([0, null]).toContain(code); // NestJS ends by the signal itself, after its hooks.
    const second = await whoSchedules(others);
    const [third] = others.filter((replica) => replica !== second) as [Replica];
    const again = start(first.id);
    await until("who ended is back", async () => (await isReady(again)) || null);
    const secondToken = await schedulesAlone(second, [third, again]);
    expect([third.ticks(), again.ticks()]).toEqual([[], []]);

    second.child.kill("SIGKILL");
    const next = await whoSchedules([third, again]);
    const last = next === third ? again : third;
    const thirdToken = await schedulesAlone(next, [last]);
    expect(last.ticks()).toEqual([]);
    expect(firstToken < secondToken && secondToken < thirdToken).toBe(true);

    next.child.kill("SIGKILL");
    await until("the last has no majority, and is not ready", async () => ((await isReady(last)) ? null : true));
    expect(last.ticks()).toEqual([]);
  },
);
