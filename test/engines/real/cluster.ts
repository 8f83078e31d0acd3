/** Three servers of one engine, whose leader is killed and paused. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { leadsAt as leadsEtcdAt } from "../../../bench/cluster/etcd.ts";
import { answerOf } from "../../../bench/cluster/zookeeper.ts";
import { freePorts } from "../../network/free-ports.ts";
import { EngineServer, etcdServer, natsServer, type Served, zookeeperArgs, zookeeperServer } from "./servers.ts";

export const CLUSTER_SIZE = 3;

export class EngineCluster implements Served {
  readonly #servers: readonly EngineServer[];
  readonly #leads: (port: number) => Promise<boolean>;
  /** The server that was killed or paused last. */
  #down: EngineServer | null = null;

  /** @param leads whether the server at that port leads; it may be down */
  constructor(servers: readonly EngineServer[], leads: (port: number) => Promise<boolean>) {
    this.#servers = servers;
    this.#leads = leads;
  }

  get ports(): readonly number[] {
    return this.#servers.map(({ port }) => port);
  }

  /** The leader. */
  async pause(): Promise<void> {
    this.#down = await this.#leader();
    this.#down.pause();
  }

  resume(): void {
    this.#down?.resume();
  }

  /** The leader. */
  async kill(): Promise<void> {
    this.#down = await this.#leader();
    await this.#down.kill();
  }

  async start(): Promise<void> {
    await this.#down?.start();
  }

  async remove(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.remove()));
  }

  async #leader(): Promise<EngineServer> {
    for (const until = performance.now() + 60_000; performance.now() < until; ) {
      for (const server of this.#servers) if (await this.#leads(server.port)) return server;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("no server became leader");
  }
}

/** Returns `count` free ports for each server. The first one is for clients. */
async function portsOfEach(count: number): Promise<number[][]> {
  const all: number[][] = [];
  for (let at = 0; at < CLUSTER_SIZE; at++) all.push(await freePorts(count));
  return all;
}

/** Three NATS servers, which replicate the stream on all of them. */
export async function natsCluster(): Promise<EngineCluster> {
  const servers = (await portsOfEach(3)).map(([client = 0, peer = 0, monitoring = 0], at) => {
    return { client, peer, monitoring, name: `server${at}` };
  });
  const routes = servers.map(({ peer }) => `nats://127.0.0.1:${peer}`).join(",");
  const started = servers.map(({ client, peer, monitoring, name }) => {
    const args = (folder: string, port: number): string[] => [
      ...natsServer.args(folder, port),
      ...["--server_name", name, "--http_port", String(monitoring)],
      // Clients do not learn other addresses: they must not bypass the network between a process and the servers.
      ...["--cluster_name", "engines", "--cluster", `nats://127.0.0.1:${peer}`, "--routes", routes, "--no_advertise"],
    ];
    return EngineServer.start({ ...natsServer, args }, client);
  });
  /**
   * Returns whether the server at this port leads the only stream, and all servers have caught up. A server that has
   * not caught up may take long to follow another leader.
   */
  const leads = async (port: number): Promise<boolean> => {
    const { name, monitoring } = servers.find(({ client }) => client === port) ?? { name: "", monitoring: 0 };
    const answer = (await (await monitored(monitoring, "/jsz?streams=true"))?.json()) as JetStreamAnswer | undefined;
    const all = await Promise.all(servers.map((each) => monitored(each.monitoring, "/healthz")));
    if (!all.every((each) => each?.ok === true)) return false;
    const streams = (answer?.account_details ?? []).flatMap(({ stream_detail = [] }) => stream_detail);
    return streams.some(({ cluster }) => cluster?.leader === name);
  };
  return new EngineCluster(await Promise.all(started), leads);
}

interface JetStreamAnswer {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly cluster?: { readonly leader?: string } }[];
  }[];
}

const monitored = (monitoring: number, path: string): Promise<Response | null> =>
  // The server is down.
  fetch(`http://127.0.0.1:${monitoring}${path}`, { signal: AbortSignal.timeout(1_000) }).catch(() => null);

export async function etcdCluster(): Promise<EngineCluster> {
  const ports = await portsOfEach(2);
  const all = ports.map(([, peer], at) => `node${at}=http://127.0.0.1:${peer}`).join(",");
  const servers = ports.map(([client = 0, peer], at) => {
    const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
    const args = (folder: string): string[] => [
      ...["--name", `node${at}`, "--data-dir", join(folder, "data")],
      ...["--listen-client-urls", clients, "--advertise-client-urls", clients],
      ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", all],
    ];
    return EngineServer.start({ ...etcdServer, args }, client);
  });
  return new EngineCluster(await Promise.all(servers), (port) => leadsEtcdAt(`127.0.0.1:${port}`));
}

export async function zookeeperCluster(): Promise<EngineCluster> {
  const ports = await portsOfEach(3);
  const all = ports.map(
    ([client, peer, election], at) => `server.${at + 1}=127.0.0.1:${peer}:${election};127.0.0.1:${client}`,
  );
  const servers = ports.map(([client = 0], at) => {
    const prepare = (_program: string, folder: string): void => {
      mkdirSync(join(folder, "data"));
      writeFileSync(join(folder, "data", "myid"), String(at + 1));
    };
    const args = (folder: string): string[] =>
      zookeeperArgs(folder, [
        `dataDir=${join(folder, "data")}`,
        ...["initLimit=10", "syncLimit=5", "maxSessionTimeout=600000", "4lw.commands.whitelist=srvr"],
        ...all,
      ]);
    return EngineServer.start({ ...zookeeperServer, prepare, args }, client);
  });
  const leads = async (port: number): Promise<boolean> => /^Mode: leader$/m.test(await answerOf(port, "srvr"));
  return new EngineCluster(await Promise.all(servers), leads);
}
