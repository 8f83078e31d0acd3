/** Debian's Patroni, which runs one PostgreSQL server and keeps its lead in etcd. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ownerOf, withChildren } from "../engines/real/servers.ts";

export const PATRONI = "/usr/bin/patroni";

/** The times are the smallest that Patroni accepts. */
const bootstrap = `
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
    postgresql: { use_pg_rewind: true }
  initdb: [{ encoding: UTF8 }, { locale: C }, data-checksums]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]
`;

export interface PatroniOptions {
  /** The folder for everything that Patroni and PostgreSQL write. */
  readonly folder: string;
  readonly etcd: readonly string[];
  readonly ports: { readonly rest: number; readonly postgres: number };
}

export class PatroniNode {
  readonly #folder: string;
  readonly #options: PatroniOptions;
  #process: ChildProcess | null = null;

  constructor(
    readonly name: string,
    options: PatroniOptions,
  ) {
    this.#options = options;
    this.#folder = join(options.folder, name);
    mkdirSync(this.#folder);
    const { etcd, ports } = options;
    const users = ["replication", "superuser", "rewind"].map(
      (use) => `${use}: { username: ${userFor(use)}, password: x }`,
    );
    const lines = [
      `scope: demo`,
      `name: ${name}`,
      `restapi: { listen: "127.0.0.1:${ports.rest}", connect_address: "127.0.0.1:${ports.rest}" }`,
      `etcd3: { hosts: "${etcd.join(",")}" }`,
      bootstrap,
      `postgresql:`,
      `  listen: 127.0.0.1:${ports.postgres}`,
      `  connect_address: 127.0.0.1:${ports.postgres}`,
      `  data_dir: ${this.#folder}/data`,
      `  bin_dir: ${binaries()}`,
      `  pgpass: ${this.#folder}/pgpass`,
      `  authentication: { ${users.join(", ")} }`,
      `  parameters: { unix_socket_directories: "${this.#folder}" }`,
    ];
    writeFileSync(this.#config, lines.join("\n"));
    const { uid, gid } = ownerOf("postgres");
    if (uid !== undefined && gid !== undefined) chownSync(this.#folder, uid, gid);
  }

  get #config(): string {
    return join(this.#folder, "patroni.yml");
  }

  start(): void {
    const log = openSync(join(this.#folder, "log"), "a");
    this.#process = spawn(PATRONI, [this.#config], {
      stdio: ["ignore", log, log],
      cwd: this.#folder,
      ...ownerOf("postgres"),
    });
  }

  /** Kills Patroni and its PostgreSQL server, as a crash of the machine would. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    const server = this.#server;
    if (server === null) return;
    const all = withChildren(server); // A child would finish its work if only the server were killed.
    for (const pid of all) kill(pid);
    while (all.some(isRunning)) await sleep(5);
  }

  /** The process id of the PostgreSQL server. Null if it does not run. */
  get #server(): number | null {
    try {
      const [pid] = readFileSync(join(this.#folder, "data/postmaster.pid"), "utf8").split("\n");
      return isRunning(Number(pid)) ? Number(pid) : null;
    } catch {
      return null;
    }
  }

  /** The end of the log, for the message of a failed test. */
  get said(): string {
    return readFileSync(join(this.#folder, "log"), "utf8").slice(-2_000);
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#options.ports.postgres}/postgres`;
  }

  /** Returns this node's role in the cluster, as Patroni reports it. Null if it does not answer. */
  async role(): Promise<string | null> {
    const url = `http://127.0.0.1:${this.#options.ports.rest}/cluster`;
    const cluster = await fetch(url).then(
      (response) => response.json() as Promise<{ members?: { name: string; role: string; state: string }[] }>,
      () => null,
    );
    const own = cluster?.members?.find(({ name }) => name === this.name);
    return own === undefined ? null : `${own.role} ${own.state}`;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended.
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const userFor = (use: string): string => (use === "superuser" ? "postgres" : use);

function binaries(): string {
  const [version] = readdirSync("/usr/lib/postgresql").sort().reverse();
  return `/usr/lib/postgresql/${version}/bin`;
}
