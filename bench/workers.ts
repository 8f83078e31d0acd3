/**
 * A benchmark's processes: either forked from one of our own files, with functions that are called over IPC, or a
 * peer's servers. Each has a folder in a directory that is removed after the benchmark.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Far longer than any step takes. */
const PATIENCE_MS = 1_200_000;
const KIB = 1_024;

export class Processes {
  /** Groups that have not ended yet, so that Ctrl-C can end them. */
  static readonly #all = new Set<Processes>();
  readonly folder: string;
  protected readonly children = new Map<string, ChildProcess>();

  constructor(name: string) {
    this.folder = mkdtempSync(join(tmpdir(), `coterie-${name}-`));
    Processes.#all.add(this);
  }

  static endAll(): void {
    for (const processes of Processes.#all) processes.end();
  }

  /** Returns a process's folder, which persists across restarts. */
  folderOf(name: string): string {
    const folder = join(this.folder, name);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  /** Starts a program once the previous process with this name has ended. */
  async spawn(name: string, program: string, args: readonly string[]): Promise<void> {
    await this.ended(name);
    this.children.set(name, spawn(program, args, { stdio: "ignore", cwd: this.folderOf(name) }));
  }

  /** Waits until the process has ended. */
  async ended(name: string): Promise<void> {
    const child = this.children.get(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    await new Promise((resolve) => child.once("exit", resolve));
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.children.get(name)?.kill(signal);
  }

  /** Returns the resident memory of all processes, as reported by the kernel. */
  residentBytes(): number {
    const kib = [...this.children.values()].map(({ pid }) => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
    });
    return KIB * kib.reduce((sum, each) => sum + each, 0);
  }

  end(): void {
    for (const child of this.children.values()) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    Processes.#all.delete(this);
  }
}

/** A worker's functions. Arguments and results are plain data. */
type Calls<C> = { readonly [N in keyof C]: (...args: never[]) => unknown };

interface Reply {
  readonly number: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** Processes that run one of our own files, by id. */
export class Workers<C extends Calls<C>, Notification = never> extends Processes {
  readonly #file: string;
  readonly #replies = new Map<number, (reply: Reply) => void>();
  #number = 0;
  onNotification: (from: number, notification: Notification) => void = () => {};

  /** @param file the path relative to this file, without its extension */
  constructor(name: string, file: string) {
    super(name);
    this.#file = ownFile(file);
  }

  start(id: number, options: object): void {
    const child = fork(this.#file, [JSON.stringify(options)]);
    child.setMaxListeners(0); // Each open call listens for the exit.
    this.children.set(String(id), child);
    child.on("message", (message: Reply | Notification) => {
      const isReply = typeof message === "object" && message !== null && "number" in message;
      if (isReply) this.#replies.get(message.number)?.(message);
      else this.onNotification(id, message);
    });
  }

  call<N extends keyof C & string>(id: number, name: N, ...args: Parameters<C[N]>): Promise<Awaited<ReturnType<C[N]>>> {
    const number = ++this.#number;
    const child = this.children.get(String(id)) as ChildProcess;
    return within(`the answer of ${id} to ${name}`, (resolve, reject) => {
      const gone = (): void => reject(new Error(`${id} ended before it answered ${name}`));
      child.once("exit", gone);
      this.#replies.set(number, ({ result, error }) => {
        this.#replies.delete(number);
        child.off("exit", gone);
        if (error === undefined) resolve(result as Awaited<ReturnType<C[N]>>);
        else reject(new Error(error));
      });
      child.send({ number, name, args });
    });
  }
}

/** In a worker, answers calls until the benchmark ends. */
export function serve(calls: Readonly<Record<string, (...args: never[]) => unknown>>): void {
  process.on("message", ({ number, name, args }: { number: number; name: string; args: never[] }) => {
    new Promise((resolve) => resolve(calls[name]?.(...args))).then(
      (result) => process.send?.({ number, result: result ?? null }),
      (error: unknown) => process.send?.({ number, error: (error as Error).stack }),
    );
  });
  process.on("disconnect", () => process.exit(0));
}

/** Returns the time in milliseconds on a clock that all processes on the machine share. */
export const sharedNowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/** Returns the path of a file in `bench/`, whether compiled or as source. */
export const ownFile = (name: string): string =>
  fileURLToPath(new URL(`${name}${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));

/** Returns the path of a file in the checkout, whether called from `bench/` or `build/bench/`. */
export const checkoutFile = (path: string): string =>
  fileURLToPath(new URL(path, new URL("../", import.meta.url).href.replace(/\/build\/$/, "/")));

/** Rejects after a timeout instead of waiting forever. */
export function within<T>(
  what: string,
  begin: (resolve: (it: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = new Error(`${what} did not happen within ${PATIENCE_MS} ms`);
    const timer = setTimeout(() => reject(late), PATIENCE_MS);
    const settle =
      <V>(end: (value: V) => void) =>
      (value: V): void => {
        clearTimeout(timer);
        end(value);
      };
    begin(settle(resolve), settle(reject));
  });
}

const LOOK_EVERY_MS = 20;

/** Polls until `look` returns a result. */
export async function eventually<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until) {
    const found = await look();
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  throw new Error(`${what} did not happen within ${PATIENCE_MS} ms`);
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = servers.map(
    (server) =>
      new Promise<number>((resolve) => {
        server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
      }),
  );
  const found = await Promise.all(ports);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return found;
}
