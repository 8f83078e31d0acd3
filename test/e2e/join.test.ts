/** `join()` in real processes: one at a time inside, whoever is killed or paused. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transformWithOxc } from "vite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { freePorts } from "../network/free-ports.ts";
import { CLI, until } from "./cluster-under-test.ts";
import type { Order, Report } from "./joined-process.ts";

const folder = mkdtempSync(join(tmpdir(), "coterie-join-"));
const program = join(folder, "joined-process.mjs");
const packageUrl = pathToFileURL(join(CLI, "..", "..", "index.js")).href;
const running = new Set<ChildProcess>();

beforeAll(async () => {
  const source = fileURLToPath(new URL("joined-process.ts", import.meta.url));
  writeFileSync(program, (await transformWithOxc(readFileSync(source, "utf8"), source)).code);
});
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Said<S extends Report["said"]> = Extract<Report, { said: S }>;

class Joined {
  readonly reports: Report[] = [];
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;

  constructor(
    readonly id: number,
    members: object,
    dataDir: string,
  ) {
    const options = JSON.stringify({ id, members, dataDir });
    const child = spawn(process.execPath, [program, packageUrl, options], { stdio: ["pipe", "pipe", "inherit"] });
    running.add(child);
    this.#child = child;
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.reports.push(JSON.parse(line) as Report);
    });
    this.exited = new Promise((resolve) => child.on("close", resolve));
  }

  order(order: Order): void {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  end(): void {
    this.#child.stdin?.end();
  }

  /** The first report of that kind, once it is there. */
  said<S extends Report["said"]>(said: S): Promise<Said<S>> {
    return until(`member ${this.id} says ${said}`, () => this.saidAlready(said)[0] ?? null);
  }

  saidAlready<S extends Report["said"]>(said: S): Said<S>[] {
    return this.reports.filter((report): report is Said<S> => report.said === said);
  }
}

async function three(): Promise<[Joined, Joined, Joined]> {
  const ports = await freePorts(3);
  const members = Object.fromEntries(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
  const data = mkdtempSync(join(folder, "data-"));
  const joined = [1, 2, 3].map((id) => new Joined(id, members, join(data, String(id))));
  await Promise.all(joined.map((member) => member.said("joined")));
  return joined as [Joined, Joined, Joined];
}

/** The first of them to say it. */
const first = <S extends Report["said"]>(members: readonly Joined[], said: S): Promise<[Joined, Said<S>]> =>
  until(`one of members ${members.map(({ id }) => id).join(", ")} says ${said}`, () => {
    const found = members.find((member) => member.saidAlready(said).length > 0);
    return found === undefined ? null : ([found, found.saidAlready(said)[0]] as [Joined, Said<S>]);
  });

const numbersIn = (file: string): number[] => readFileSync(file, "utf8").trim().split("\n").map(Number);
const isGrowing = (tokens: readonly number[]): boolean =>
  tokens.every((token, index) => index === 0 || token > (tokens[index - 1] as number));

const algorithms = [
  "elected-server",
  "epoch-token-ring",
  "central-server",
  "token-ring",
  "ricart-agrawala",
  "maekawa-sanders",
];

test.each(algorithms)("%s: who contends is inside alone, with growing tokens", async (algorithm) => {
  const members = await three();
  const witness = join(folder, `inside-${algorithm}`);
  for (const member of members) member.order({ do: "contend", algorithm, entries: 20, witness });
  await Promise.all(members.map((member) => member.said("contended")));
  const tokens = numbersIn(`${witness}.log`); // In the order of the entries.
  expect(tokens).toHaveLength(60);
  expect(isGrowing(tokens)).toBe(true);
  expect(existsSync(witness)).toBe(false);
});

test("a leader that is killed is followed by another, with a higher token", async () => {
  const members = await three();
  for (const member of members) member.order({ do: "lead" });
  const [leader, { token }] = await first(members, "leading");
  leader.signal("SIGKILL");
  const others = members.filter((member) => member !== leader);
  const [, next] = await first(others, "leading");
  expect(next.token).toBeGreaterThan(token);
});

test("a holder that is killed does not keep the lock", async () => {
  const [holder, waiter] = await three();
  holder.order({ do: "write", file: join(folder, "killed") });
  const { token } = await holder.said("writing");
  waiter.order({ do: "enter" });
  holder.signal("SIGKILL");
  expect((await waiter.said("entered")).token).toBeGreaterThan(token);
});

test("a holder that stood still learns that its grant is lost before it writes again", async () => {
  const [holder, other] = await three();
  const file = join(folder, "paused");
  holder.order({ do: "write", file });
  const { token } = await holder.said("writing");
  holder.signal("SIGSTOP");
  other.order({ do: "write", file });
  const next = await other.said("writing");
  expect(next.token).toBeGreaterThan(token);
  await until("the successor writes", () => (numbersIn(file).includes(next.token) ? true : null));
  holder.signal("SIGCONT");
  expect(await holder.said("lost")).toEqual({ said: "lost", token, code: "grant-lost", heldAfter: false });
  const after = numbersIn(file);
  const stale = after.slice(after.indexOf(next.token)).filter((written) => written === token);
  // It may have been stopped between a look and a write. For that one the resource has to look at the token itself.
  expect(stale.length).toBeLessThanOrEqual(1);
});

test("after leaving, nothing keeps the process alive", async () => {
  const [one] = await three();
  one.order({ do: "lead" });
  one.order({ do: "enter" });
  await one.said("entered");
  one.order({ do: "leave" });
  await one.said("left");
  one.end();
  expect(await one.exited).toBe(0);
});
