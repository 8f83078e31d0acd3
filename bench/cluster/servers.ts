/** Servers of a peer, as processes in a folder of their own, which end with the benchmark. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { residentBytesOf } from "./resident.ts";

export class Servers {
  static readonly #all = new Set<Servers>();
  readonly folder: string;
  readonly #program: string;
  readonly #children = new Map<string, ChildProcess>();

  constructor(system: string, program: string) {
    this.folder = mkdtempSync(join(tmpdir(), `coterie-${system}-`));
    this.#program = program;
    Servers.#all.add(this);
  }

  static endAll(): void {
    for (const servers of Servers.#all) servers.end();
  }

  /** @returns a folder that a server keeps over all its runs. */
  folderOf(name: string): string {
    const folder = join(this.folder, name);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  /** Starts a server, after the end of the process that it may have had. */
  async start(name: string, words: readonly string[]): Promise<void> {
    const before = this.#children.get(name);
    if (before !== undefined && before.exitCode === null && before.signalCode === null)
      await new Promise((resolve) => before.once("exit", resolve));
    this.#children.set(name, spawn(this.#program, words, { stdio: "ignore", cwd: this.folderOf(name) }));
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.#children.get(name)?.kill(signal);
  }

  residentBytes(): number {
    return residentBytesOf([...this.#children.values()]);
  }

  end(): void {
    for (const child of this.#children.values()) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
    Servers.#all.delete(this);
  }
}
