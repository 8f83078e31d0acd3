/**
 * ZooKeeper from Debian's package: three servers on loopback. Our own client for its protocol generates the load, with
 * one connection per 32 clients. Only writes are linearizable: reads go to the leader and may be stale.
 */
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ZookeeperConnection } from "../../src/engines/zookeeper-connection.ts";
import { NO_NODE, NODE_EXISTS, OK } from "../../src/engines/zookeeper-wire.ts";
import { keyOf, loadOf, type Throughput, throughputOf, VALUE } from "../load.ts";
import { eventually, freePorts, Processes } from "../workers.ts";
import type { LedSystem, Work } from "./system.ts";

const JAR = "/usr/share/java/zookeeper.jar";
const JAVA = "/usr/bin/java";
const MEMBERS = 3;
const CLIENTS_OF_CONNECTION = 32;
const SESSION_MS = 30_000;
const CONNECT_EVERY_MS = 20;
const PATIENCE_MS = 20_000;
const LOCK_PATH = "/lock";

interface Ports {
  readonly name: string;
  readonly client: number;
  readonly peer: number;
  readonly election: number;
}

export const isZookeeperInstalled = (): boolean => existsSync(JAR) && existsSync(JAVA);

export class Zookeeper extends Processes implements LedSystem {
  /** The name, which includes the version once the servers are running. */
  name = "ZooKeeper";
  readonly #servers: readonly Ports[];
  /** Connections by server name. The first one for each server is for single requests. */
  readonly #connections = new Map<string, ZookeeperConnection[]>();

  private constructor(ports: readonly number[]) {
    super("zookeeper");
    this.#servers = Array.from({ length: MEMBERS }, (_, at) => {
      const [client = 0, peer = 0, election = 0] = ports.slice(3 * at);
      return { name: String(at + 1), client, peer, election };
    });
  }

  static async start(): Promise<Zookeeper> {
    const zookeeper = new Zookeeper(await freePorts(3 * MEMBERS));
    for (const name of zookeeper.members) await zookeeper.restart(name);
    const leader = await zookeeper.leader();
    const about = await answerOf(zookeeper.#portsOf(leader).client, "srvr");
    zookeeper.name = `ZooKeeper ${/^Zookeeper version: ([\d.]+)/m.exec(about)?.[1]}`;
    const [first] = await zookeeper.#connected(leader, 1);
    await first?.done({ type: "create", path: LOCK_PATH, data: "", kind: "persistent" }, NODE_EXISTS);
    return zookeeper;
  }

  get members(): readonly string[] {
    return this.#servers.map(({ name }) => name);
  }

  leader(): Promise<string> {
    return eventually("a leader of ZooKeeper", async () => {
      for (const name of this.members)
        if (/^Mode: leader$/m.test(await answerOf(this.#portsOf(name).client, "srvr"))) return name;
      return null;
    });
  }

  async load(work: Work, inFlight: number, ms: number): Promise<Throughput> {
    const leader = await this.leader();
    if (work === "watch") return this.#watched(leader, ms);
    if (work === "lock") return this.#locked(leader, inFlight, ms);
    const connections = await this.#connected(leader, Math.ceil(inFlight / CLIENTS_OF_CONNECTION));
    const at = (client: number) => connections[client % connections.length] as ZookeeperConnection;
    const path = (client: number, turn: number): string => `/${keyOf(client, turn)}`;
    if (work === "write") return loadOf(inFlight, ms, (client, turn) => put(at(client), path(client, turn), VALUE));
    return loadOf(inFlight, ms, (client, turn) =>
      at(client).done({ type: "get", path: path(client, turn), isWatched: false }, NO_NODE),
    );
  }

  async write(name: string, timeoutMs: number): Promise<boolean> {
    const accepted = async (): Promise<boolean> => {
      const [connection] = await this.#connected(name, 1);
      await put(connection as ZookeeperConnection, "/fail-over", VALUE);
      return true;
    };
    return Promise.race([accepted(), sleep(timeoutMs, false)]).catch(() => false);
  }

  restart(name: string): Promise<void> {
    const folder = this.folderOf(name);
    const { client } = this.#portsOf(name);
    const lines = [
      ...["tickTime=2000", "initLimit=10", "syncLimit=5", "admin.enableServer=false", "4lw.commands.whitelist=srvr"],
      ...[`dataDir=${folder}`, `clientPort=${client}`, "clientPortAddress=127.0.0.1", "maxClientCnxns=1000"],
      ...this.#servers.map(({ name: each, peer, election }) => `server.${each}=127.0.0.1:${peer}:${election}`),
      "",
    ];
    writeFileSync(join(folder, "zoo.cfg"), lines.join("\n"));
    writeFileSync(join(folder, "myid"), name);
    const main = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
    return this.spawn(name, JAVA, ["-cp", JAR, main, join(folder, "zoo.cfg")]);
  }

  override end(): void {
    for (const connection of [...this.#connections.values()].flat()) connection.end();
    super.end();
  }

  #portsOf(name: string): Ports {
    return this.#servers.find((server) => server.name === name) as Ports;
  }

  /** Returns at least `count` open connections to a server, replacing closed ones. */
  async #connected(name: string, count: number): Promise<readonly ZookeeperConnection[]> {
    const open = (this.#connections.get(name) ?? []).filter(({ isOver }) => !isOver);
    this.#connections.set(name, open);
    while (open.length < count) open.push(await this.#connection(name));
    return open;
  }

  /** Opens a connection. Retries, because a server that has just started does not accept sessions yet. */
  async #connection(name: string): Promise<ZookeeperConnection> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const request = { tls: undefined, timeoutMs: SESSION_MS, session: null };
      try {
        return await ZookeeperConnection.open({ host: "127.0.0.1", port: this.#portsOf(name).client }, request);
      } catch (error) {
        if (performance.now() > until) throw error;
        await sleep(CONNECT_EVERY_MS);
      }
    }
  }

  /**
   * Measures ZooKeeper's documented lock recipe: one sequential node per waiter, with each waiting for the previous
   * one.
   */
  async #locked(leader: string, inFlight: number, ms: number): Promise<Throughput> {
    const sessions = await Promise.all(Array.from({ length: inFlight }, () => this.#connection(leader)));
    const found = await loadOf(inFlight, ms, async (client) => {
      const connection = sessions[client] as ZookeeperConnection;
      const kind = "sequential";
      const { path = "" } = await connection.done({ type: "create", path: `${LOCK_PATH}/n-`, data: "", kind });
      await turnOf(connection, path);
      await connection.done({ type: "delete", path, version: -1 });
    });
    for (const session of sessions) session.end();
    return found;
  }

  async #watched(leader: string, ms: number): Promise<Throughput> {
    const other = this.members.find((member) => member !== leader) as string;
    const [writer] = (await this.#connected(leader, 1)) as [ZookeeperConnection];
    const watcher = await this.#connection(other);
    const path = "/watched";
    await put(watcher, path, "0"); // This server has applied every acknowledged write; other servers may lag behind.
    const took: number[] = [];
    const began = performance.now();
    for (let turn = 1; performance.now() - began < ms; turn++) {
      const changed = new Promise<void>((resolve) => (watcher.onWatch = resolve));
      await watcher.done({ type: "get", path, isWatched: true });
      const since = performance.now();
      await put(writer, path, String(turn));
      await changed;
      await watcher.done({ type: "get", path, isWatched: false }); // A notification does not contain the value.
      took.push(performance.now() - since);
    }
    watcher.end();
    return throughputOf(took, performance.now() - began);
  }
}

async function put(connection: ZookeeperConnection, path: string, data: string): Promise<void> {
  const { code } = await connection.done({ type: "set", path, data, version: -1 }, NO_NODE);
  if (code !== OK) await connection.done({ type: "create", path, data, kind: "persistent" }, NODE_EXISTS);
}

/** Waits until no node has a smaller number. */
async function turnOf(connection: ZookeeperConnection, path: string): Promise<void> {
  const own = path.slice(LOCK_PATH.length + 1);
  for (;;) {
    const { names = [] } = await connection.done({ type: "children", path: LOCK_PATH });
    const before = names
      .filter((name) => name < own)
      .sort()
      .at(-1);
    if (before === undefined) return;
    const changed = new Promise<void>((resolve) => (connection.onWatch = resolve));
    const request = { type: "get", path: `${LOCK_PATH}/${before}`, isWatched: true } as const;
    if ((await connection.done(request, NO_NODE)).code === OK) await changed;
  }
}

/**
 * Sends a four-letter command.
 * @returns the answer, or an empty string if the server does not respond
 */
export const answerOf = (port: number, word: string): Promise<string> =>
  new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(word));
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on("data", (data: Buffer) => (text += data.toString()));
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
