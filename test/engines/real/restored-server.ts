/** A server that is restored once for several concurrent checks. Each check waits until all have reached that step. */
import { type EngineMember, join } from "../../../src/index.ts";
import { RESTORING_MS, type RestoreStage } from "../restores.ts";
import { realTime } from "./counting.ts";
import type { RealEngine } from "./engines.ts";
import { EngineServer, type ServerKind } from "./servers.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export class RestoredServer {
  readonly #server: EngineServer;
  readonly #engine: RealEngine["engine"];
  readonly #members: EngineMember[] = [];
  readonly #proxies: TcpProxy[] = [];
  readonly #backUp = new Barrier(() => this.#server.backUp());
  readonly #restore = new Barrier(() => this.#server.restore(RESTORING_MS));

  private constructor(server: EngineServer, engine: RealEngine["engine"]) {
    this.#server = server;
    this.#engine = engine;
  }

  static async start(kind: ServerKind, engine: RealEngine["engine"]): Promise<RestoredServer> {
    return new RestoredServer(await EngineServer.start(kind), engine);
  }

  /** @param checks the number of concurrent checks */
  async during(check: (stage: RestoreStage) => Promise<void>, checks: number): Promise<void> {
    const [backedUp, restored] = [this.#backUp.party(checks), this.#restore.party(checks)];
    try {
      await check({
        ...realTime,
        join: (sessionMs) => this.#join(sessionMs, this.#server.port),
        joinBehind: async (sessionMs) => {
          const proxy = await TcpProxy.start(this.#server.port);
          this.#proxies.push(proxy);
          return { member: await this.#join(sessionMs, proxy.port), network: proxy };
        },
        backUp: backedUp,
        restore: restored,
      });
    } finally {
      // The others do not wait for a failed check.
      for (const arrive of [backedUp, restored]) void arrive().catch(() => {});
    }
  }

  async remove(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.leave()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await this.#server.remove();
  }

  async #join(sessionMs: number, port: number): Promise<EngineMember> {
    const member = await join({ engine: this.#engine([port]), sessionMs, timeoutMs: 60_000 });
    this.#members.push(member);
    return member;
  }
}

/** The last party that arrives runs the work. */
class Barrier {
  readonly #work: () => Promise<void>;
  #arrived = 0;
  #begin: () => void = () => {};
  readonly #done: Promise<void>;

  constructor(work: () => Promise<void>) {
    this.#work = work;
    this.#done = new Promise<void>((resolve) => {
      this.#begin = resolve;
    }).then(() => this.#work());
  }

  /** @returns the function with which one party arrives. It may be called again, but the party is counted once */
  party(parties: number): () => Promise<void> {
    let hasArrived = false;
    return () => {
      if (!hasArrived) this.#arrived += 1;
      hasArrived = true;
      if (this.#arrived === parties) this.#begin();
      return this.#done;
    };
  }
}
