/** Members of `join()` in separate processes that take orders. They end with the test. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { transformWithOxc } from "vite";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { JoinOptions } from "../../src/cluster/services/api.ts";
import { freePorts } from "../network/free-ports.ts";
import { PACKAGE, until } from "./cluster-under-test.ts";
import type { Order, Report } from "./joined-process.ts";

/** A folder for this file's members, removed after its tests. */
export const folder = mkdtempSync(join(tmpdir(), "coterie-join-"));
const program = join(folder, "joined-process.mjs");
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

export type Said<S extends Report["kind"]> = Extract<Report, { kind: S }>;

/** The addresses and folders of a cluster's members. */
export interface Place {
  readonly members: Readonly<Record<number, string>>;
  /** Contains a folder for each member. */
  readonly data: string;
}

export async function place(size: number): Promise<Place> {
  const ports = await freePorts(size);
  const members = Object.fromEntries(ports.map((port, index) => [index + 1, `127.0.0.1:${port}`]));
  return { members, data: mkdtempSync(join(folder, "data-")) };
}

export class Joined {
  readonly reports: Report[] = [];
  /** The standard error of the process. */
  errors = "";
  hasExited = false;
  readonly exited: Promise<number | null>;
  readonly #child: ChildProcess;

  constructor(
    readonly id: number,
    { members, data }: Place,
    packageUrl = PACKAGE,
    more: Partial<JoinOptions> = {},
  ) {
    const options = JSON.stringify({ id, members, dataDir: join(data, String(id)), ...more });
    const child = spawn(process.execPath, ["--expose-gc", program, packageUrl, options], { stdio: "pipe" });
    child.stdin.on("error", () => {}); // The process may be killed while it receives an order.
    child.stderr.on("data", (chunk) => {
      this.errors += chunk;
    });
    running.add(child);
    this.#child = child;
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.reports.push(JSON.parse(line) as Report);
    });
    this.exited = new Promise((resolve) => {
      child.on("close", (code) => {
        this.hasExited = true;
        resolve(code);
      });
    });
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

  /** Resolves with the first report of that kind. */
  said<S extends Report["kind"]>(said: S, withinMs?: number): Promise<Said<S>> {
    return until(
      () => `member ${this.id} says ${said}, but its errors were ${JSON.stringify(this.errors)}`,
      () => this.saidAlready(said)[0] ?? null,
      undefined,
      withinMs,
    );
  }

  saidAlready<S extends Report["kind"]>(said: S): Said<S>[] {
    return this.reports.filter((report): report is Said<S> => report.kind === said);
  }
}

/** Starts members 1, 2 and so on. Resolves when they have joined. */
export async function joinedAt(where: Place, packageUrl = PACKAGE, more: Partial<JoinOptions> = {}): Promise<Joined[]> {
  const joined = Object.keys(where.members).map((id) => new Joined(Number(id), where, packageUrl, more));
  await Promise.all(joined.map((member) => member.said("joined")));
  return joined;
}

export const numbersIn = (file: string): number[] => readFileSync(file, "utf8").trim().split("\n").map(Number);

export const isGrowing = (tokens: readonly number[]): boolean =>
  tokens.every((token, index) => index === 0 || token > (tokens[index - 1] as number));
