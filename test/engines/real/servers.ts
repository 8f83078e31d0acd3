/** Engines as Debian packages them, each in its own folder and on its own port, to be killed, paused and restarted. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../../network/free-ports.ts";
import type { Away } from "../fenced-counter.ts";

/** How an engine's server is started. */
export interface ServerKind {
  /** Debian's package. */
  readonly package: string;
  /** Returns the path of the program, or null if it is not installed. */
  find(): string | null;
  /** Called before the first start. */
  prepare?(program: string, folder: string): void;
  args(folder: string, port: number): string[];
  /** The account that runs the server if the tests run as root. */
  readonly user?: string;
}

const POSTGRES = "/usr/lib/postgresql";

export const postgresServer: ServerKind = {
  package: "postgresql",
  user: "postgres",
  find() {
    const [version] = existsSync(POSTGRES) ? readdirSync(POSTGRES).sort().reverse() : [];
    return version === undefined ? null : join(POSTGRES, version, "bin/postgres");
  },
  prepare(program, folder) {
    const initdb = program.replace(/postgres$/, "initdb");
    const args = ["-D", join(folder, "data"), "-U", "coterie", "-A", "trust", "--no-locale", "-E", "UTF8"];
    execFileSync(initdb, args, { stdio: "pipe", ...ownerOf("postgres"), cwd: folder });
  },
  args: (folder, port) => [
    "-D",
    join(folder, "data"),
    "-p",
    String(port),
    "-k",
    folder,
    "-c",
    "listen_addresses=127.0.0.1",
  ],
};

export const redisServer: ServerKind = {
  package: "redis-server",
  find: () => ["/usr/bin/redis-server"].find((path) => existsSync(path)) ?? null,
  args: (folder, port) =>
    ["--dir", folder, "--port", String(port), "--bind", "127.0.0.1", "--save", ""].concat([
      "--appendonly",
      "yes",
      "--appendfsync",
      "always",
    ]),
};

export const etcdServer: ServerKind = {
  package: "etcd-server",
  find: () => ["/usr/bin/etcd"].find((path) => existsSync(path)) ?? null,
  args(folder, port) {
    const [client, peer] = [`http://127.0.0.1:${port}`, "http://127.0.0.1:0"];
    const clients = ["--listen-client-urls", client, "--advertise-client-urls", client];
    const peers = ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer];
    return ["--data-dir", join(folder, "data"), ...clients, ...peers, "--initial-cluster", `default=${peer}`];
  },
};

export const natsServer: ServerKind = {
  package: "nats-server",
  find: () => ["/usr/sbin/nats-server"].find((path) => existsSync(path)) ?? null,
  args: (folder, port) => ["--jetstream", "--store_dir", folder, "--addr", "127.0.0.1", "--port", String(port)],
};

/** The manifest of this jar lists everything else. */
const ZOOKEEPER = { jar: "/usr/share/java/zookeeper.jar", java: "/usr/bin/java" } as const;

export const zookeeperServer: ServerKind = {
  package: "zookeeper default-jre-headless",
  find: () => (existsSync(ZOOKEEPER.jar) && existsSync(ZOOKEEPER.java) ? ZOOKEEPER.java : null),
  args(folder, port) {
    const lines = [`dataDir=${join(folder, "data")}`, `clientPort=${port}`, "clientPortAddress=127.0.0.1"];
    return zookeeperArgs(folder, lines);
  },
};

/** Accepts clients with certificates of an authority, and proves its own identity by the same authority. */
export const zookeeperServerOverTls = (certificates: { readonly ca: string; readonly own: string }): ServerKind => ({
  ...zookeeperServer,
  args(folder, port) {
    const [ca, own] = [join(folder, "ca.pem"), join(folder, "own.pem")];
    writeFileSync(ca, certificates.ca);
    writeFileSync(own, certificates.own);
    return zookeeperArgs(
      folder,
      [
        ...[`dataDir=${join(folder, "data")}`, `secureClientPort=${port}`, "secureClientPortAddress=127.0.0.1"],
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        ...[`ssl.keyStore.location=${own}`, "ssl.keyStore.type=PEM"],
        ...[`ssl.trustStore.location=${ca}`, "ssl.trustStore.type=PEM"],
      ],
      ["netty-codec.jar", "netty-resolver.jar"], // The manifest leaves these out.
    );
  },
});

/** @param lines lines of its configuration */
export function zookeeperArgs(folder: string, lines: readonly string[], jars: readonly string[] = []): string[] {
  const file = join(folder, "zoo.cfg");
  writeFileSync(file, ["tickTime=2000", "admin.enableServer=false", ...lines, ""].join("\n"));
  const main = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
  const path = [ZOOKEEPER.jar, ...jars.map((jar) => join(dirname(ZOOKEEPER.jar), jar))].join(":");
  return ["-Xmx256m", "-XX:+UseSerialGC", "-cp", path, main, file];
}

export interface Served extends Away {
  /** The client ports of the servers, in the order in which a process lists them. */
  readonly ports: readonly number[];
  remove(): Promise<void>;
}

/** PostgreSQL's message while a process of the previous server still runs. */
const OTHERS_LIVE = "pre-existing shared memory block";
const OTHERS_END_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** One server, over all its runs. */
export class EngineServer implements Served {
  readonly folder = mkdtempSync(join(tmpdir(), "coterie-engine-"));
  port = 0;
  readonly #kind: ServerKind;
  readonly #program: string;
  #process: ChildProcess | null = null;
  #said = "";

  private constructor(kind: ServerKind, program: string) {
    this.#kind = kind;
    this.#program = program;
  }

  /** @throws Error that names the missing package */
  static async start(kind: ServerKind, port?: number): Promise<EngineServer> {
    const program = kind.find();
    if (program === null) throw new Error(`not installed: apt-get install ${kind.package}, which .ci/run does`);
    const server = new EngineServer(kind, program);
    if (kind.user !== undefined) {
      const { uid, gid } = ownerOf(kind.user);
      if (uid !== undefined && gid !== undefined) chownSync(server.folder, uid, gid);
    }
    kind.prepare?.(program, server.folder);
    server.port = port ?? ((await freePorts(1))[0] as number);
    await server.start();
    return server;
  }

  get ports(): readonly number[] {
    return [this.port];
  }

  /** Child processes of a killed server may take a while to end. PostgreSQL does not start until they have. */
  async start(): Promise<void> {
    const until = performance.now() + OTHERS_END_WITHIN_MS;
    while (!(await this.#isStarted())) {
      if (!this.#said.includes(OTHERS_LIVE) || performance.now() > until)
        throw new Error(`${this.#kind.package} ended: ${this.#said}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** @returns whether it answers; otherwise it has ended */
  async #isStarted(): Promise<boolean> {
    const { user } = this.#kind;
    const child = spawn(this.#program, this.#kind.args(this.folder, this.port), {
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
      ...(user === undefined ? {} : ownerOf(user)),
    });
    this.#said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (data: Buffer) => (this.#said = (this.#said + data.toString()).slice(-4_000)));
    this.#process = child;
    const ended = once(child, "close").then(() => false); // The output is complete when `close` is emitted.
    for (;;) {
      if (await answers(this.port)) return true;
      if (child.exitCode !== null || child.signalCode !== null) return ended;
      await sleep(LOOK_EVERY_MS);
    }
  }

  /**
   * Kills the process. Data that it has passed to the operating system survives, even if unsynced. A power failure
   * would lose more.
   */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGCONT");
    child.kill("SIGKILL");
    await ended;
  }

  /** Pauses the server and its child processes: PostgreSQL has a process for each connection. */
  pause(): void {
    for (const pid of this.#all()) process.kill(pid, "SIGSTOP");
  }

  resume(): void {
    for (const pid of this.#all()) process.kill(pid, "SIGCONT");
  }

  /** Copies the server's data from disk, while it is down for a moment. */
  async backUp(): Promise<void> {
    await this.kill();
    copyFolder(this.folder, this.#backup);
    await this.start();
  }

  /** Restarts the server from the last backup. @param ms how long that takes at least */
  async restore(ms: number): Promise<void> {
    await this.kill();
    copyFolder(this.#backup, this.folder);
    await sleep(ms);
    await this.start();
  }

  async remove(): Promise<void> {
    await this.kill();
    for (const folder of [this.folder, this.#backup]) rmSync(folder, { recursive: true, force: true });
  }

  get #backup(): string {
    return `${this.folder}-backup`;
  }

  #all(): number[] {
    const pid = this.#process?.pid;
    return pid === undefined ? [] : withChildren(pid);
  }
}

/** Returns the ids of a process and its children. */
export function withChildren(pid: number): number[] {
  try {
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
    return [pid, ...children.split("\n").map(Number)].filter((each) => each > 0);
  } catch {
    return [pid]; // The process has no children.
  }
}

/** Copies a folder and preserves the owners of its files. */
function copyFolder(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  execFileSync("cp", ["-a", from, to]);
}

/** Returns the ids of the account, or an empty object if the tests do not run as root. */
export function ownerOf(user: string): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
