/** Runs real processes for the end-to-end tests: the built command line, and clusters started with it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { LifecycleEvent } from "../../src/cluster/local/lifecycle.ts";
import type { ClusterStatus } from "../../src/cluster/local-cluster.ts";
import { freePorts } from "../network/free-ports.ts";
import { PATIENCE_MS } from "../patience.ts";

export const CLI = process.env.COTERIE_CLI ?? fileURLToPath(new URL("../../dist/cli/coterie.js", import.meta.url));
/** The loader that runs TypeScript files, for `node --import`. It reads the tsconfig.json of the working folder. */
export const TSX = new URL("../../node_modules/tsx/dist/esm/index.mjs", import.meta.url).href;

/** The built package of this checkout. */
export const PACKAGE = new URL("../index.js", pathToFileURL(CLI)).href;

type Ready = Extract<LifecycleEvent, { event: "ready" }> & { studio: string | null; admin: string };
type EventNamed<E extends LifecycleEvent["event"]> = Extract<LifecycleEvent, { event: E }>;

/**
 * The processes that a test started and their children, with pid and start time. They are killed after the test even if
 * it failed. The start time is compared first, because the system can reuse the pid of an ended process.
 */
const started = new Map<number, string | null>();

export interface Finished {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One run of a script. */
export class ScriptUnderTest {
  stdout = "";
  stderr = "";
  readonly finished: Promise<Finished>;
  protected readonly child: ChildProcess;

  constructor(script: string, ...args: string[]) {
    this.child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    started.set(this.pid, startTimeOf(this.pid));
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.finished = new Promise((resolve) => {
      this.child.on("close", (code, signal) => resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** The lines of stdout as JSON, as they arrive. */
  async *lines(): AsyncGenerator<unknown> {
    for await (const line of createInterface({ input: this.child.stdout as NodeJS.ReadableStream }))
      yield JSON.parse(line);
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** The output and, on Linux, whether the process waits or is ready to run, and the processor time it has used. */
  get standing(): string {
    return `it is ${conditionOf(this.pid)}; stdout: ${this.stdout}; stderr: ${this.stderr}`;
  }
}

/** One run of the command line. */
export class Coterie extends ScriptUnderTest {
  constructor(...args: string[]) {
    if (!existsSync(CLI)) throw new Error(`expected the built command line at ${CLI}: run \`npm run build\``);
    super(CLI, ...args);
  }
}

export function coterie(...args: string[]): Promise<Finished> {
  return new Coterie(...args).finished;
}

export class ClusterUnderTest extends Coterie {
  readonly events: LifecycleEvent[] = [];
  readonly pids = new Map<number, number>();
  ready!: Ready;

  /** Starts `coterie up` on free ports and waits until it is ready. */
  static async up(...args: string[]): Promise<ClusterUnderTest> {
    const cluster = new ClusterUnderTest("up", "--port", "0", "--json", ...args);
    void cluster.#follow();
    await until("the cluster is ready", () => cluster.ready, cluster);
    return cluster;
  }

  async #follow(): Promise<void> {
    for await (const line of this.lines()) {
      const event = line as LifecycleEvent;
      this.events.push(event);
      if (event.event === "ready") {
        this.ready = event as Ready;
        for (const { id, pid } of event.nodes) this.#note(id, pid as number);
      }
      if (event.event === "started") this.#note(event.node, event.pid);
    }
  }

  #note(node: number, pid: number): void {
    started.set(pid, startTimeOf(pid));
    this.pids.set(node, pid);
  }

  pidOf(node: number): number {
    return this.pids.get(node) as number;
  }

  kill(node: number, signal: NodeJS.Signals = "SIGKILL"): void {
    process.kill(this.pidOf(node), signal);
  }

  async status(): Promise<ClusterStatus> {
    const response = await fetch(`${this.ready.admin}/status`);
    return (await response.json()) as ClusterStatus;
  }

  /** Waits until exactly these nodes are alive and all of them report `leader`. Resolves with the duration. */
  async agreed(leader: number, alive: readonly number[]): Promise<number> {
    const from = performance.now();
    let seen = "";
    const isSo = async (): Promise<boolean> => {
      const { nodes } = await this.status();
      seen = nodes.map((node) => `${node.id} ${node.alive ? `follows ${node.leader}` : node.process}`).join(", ");
      return nodes.every((node) => (alive.includes(node.id) ? node.alive && node.leader === leader : !node.alive));
    };
    await until(() => `nodes ${alive.join(", ")} are alive and follow ${leader}, but ${seen}`, isSo, this);
    return Math.round(performance.now() - from);
  }

  /** Resolves with the first event of that name at or after index `from`. */
  async event<E extends LifecycleEvent["event"]>(name: E, from = 0): Promise<EventNamed<E>> {
    const find = () => this.events.slice(from).find((event) => event.event === name);
    return (await until(`an event ${name}`, find, this)) as EventNamed<E>;
  }

  /** Sends a command to a node. Repeats it if the node is slow to answer. */
  async command(node: number, command: string): Promise<void> {
    const take = async () => (await this.act({ type: "command", node, command })).status === 200;
    await until(`node ${node} takes ${command}`, take, this);
  }

  act(act: object): Promise<Response> {
    return fetch(`${this.ready.admin}/api/act`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(act),
    });
  }
}

/** Polls until the result is truthy, and returns it. */
export async function until<T>(
  what: string | (() => string),
  look: () => T | Promise<T>,
  process?: Pick<ScriptUnderTest, "standing">,
  withinMs = PATIENCE_MS,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) {
      const said = process === undefined ? "" : `, but ${process.standing}`;
      throw new Error(`waited ${withinMs} ms until ${typeof what === "string" ? what : what()}${said}`);
    }
    await sleep(20);
  }
}

/** Whether the process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat[stat.lastIndexOf(")") + 2] !== "Z";
  } catch {
    return process.platform !== "linux";
  }
}

/**
 * Reads the start time of a process from Linux `/proc`, in clock ticks since boot. Returns null if the process has
 * ended or `/proc` is missing.
 */
function startTimeOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null; // The process name may contain brackets.
  } catch {
    return null;
  }
}

/** Reads the state and the processor time, in hundredths of a second, from Linux `/proc`. */
function conditionOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name may contain brackets.
    const [state, ...numbers] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return `in state ${state} after ${Number(numbers[10]) + Number(numbers[11])} ticks`;
  } catch {
    return "gone";
  }
}

/** Reads the parent's pid from Linux `/proc`. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]); // The process name may contain brackets.
}

/** Kills the processes of the test that are still running, and waits until they have ended. For `afterEach`. */
export async function endAll(): Promise<void> {
  const running = () => [...started].filter(([pid, startTime]) => isAlive(pid) && startTimeOf(pid) === startTime);
  for (const [pid] of running()) process.kill(pid, "SIGKILL");
  await until("every process has ended", () => running().length === 0);
  started.clear();
}

/**
 * Waits until the port is free and occupies it until `release`. By default, picks a port that neither outgoing
 * connections nor `up --port 0` can use.
 */
export async function occupyPort(wanted?: number): Promise<{ port: number; release: () => void }> {
  for (;;) {
    const server = createServer();
    const [port] = wanted === undefined ? ((await freePorts(1)) as [number]) : [wanted];
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (isFree) return { port, release: () => void server.close() };
  }
}
