/** Three servers of one engine, of which the leader is killed and paused. */
import type { EngineServer, Served } from "./servers.ts";

export const CLUSTER_SIZE = 3;

export class EngineCluster implements Served {
  readonly #servers: readonly EngineServer[];
  readonly #leads: (port: number) => Promise<boolean>;
  /** What was killed or paused last. */
  #down: EngineServer | null = null;

  /** @param leads whether the server at that port leads; it may be away. */
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
    throw new Error("no server came to lead");
  }
}
