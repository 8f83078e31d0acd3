/** Three servers of etcd, of which the leader is killed and paused. */
import { join } from "node:path";
import { EngineServer, etcdServer, freePort, type Served } from "./servers.ts";

const SIZE = 3;

export class EtcdCluster implements Served {
  readonly #servers: readonly EngineServer[];
  /** What was killed or paused last. */
  #down: EngineServer | null = null;

  private constructor(servers: readonly EngineServer[]) {
    this.#servers = servers;
  }

  static async start(): Promise<EtcdCluster> {
    const places: { readonly client: number; readonly peer: number }[] = [];
    for (let at = 0; at < SIZE; at++) places.push({ client: await freePort(), peer: await freePort() });
    const all = places.map(({ peer }, at) => `node${at}=http://127.0.0.1:${peer}`).join(",");
    const servers = places.map(({ client, peer }, at) => {
      const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
      const args = (folder: string): string[] => [
        ...["--name", `node${at}`, "--data-dir", join(folder, "data")],
        ...["--listen-client-urls", clients, "--advertise-client-urls", clients],
        ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", all],
      ];
      return EngineServer.start({ ...etcdServer, args }, client);
    });
    return new EtcdCluster(await Promise.all(servers));
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
      for (const server of this.#servers) if (await leads(server.port)) return server;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("no server of etcd came to lead");
  }
}

async function leads(port: number): Promise<boolean> {
  const place = `http://127.0.0.1:${port}/v3/maintenance/status`;
  const asked = { method: "POST", body: "{}", signal: AbortSignal.timeout(1_000) };
  const answer = await fetch(place, asked).then(
    (response) => response.json() as Promise<{ leader?: string; header?: { member_id?: string } }>,
    () => null, // It is away.
  );
  return answer?.leader !== undefined && answer.leader === answer.header?.member_id;
}
