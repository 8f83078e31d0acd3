/**
 * The connections to the ZooKeeper servers. One lasting connection goes to the same server as long as it answers, and
 * reconnects when it is lost. Others last for a moment only. The lasting connection has a new ZooKeeper session each time,
 * which owns no znodes.
 */
import type { ConnectionOptions } from "node:tls";
import { StoreError } from "./store.ts";
import { type Place, ZookeeperConnection } from "./zookeeper-connection.ts";
import type { SessionKey } from "./zookeeper-wire.ts";

export interface ServersOptions {
  readonly places: readonly Place[];
  readonly tls: ConnectionOptions | undefined;
  /** The index of the server to try first. */
  readonly first: number;
  /** Creates the znodes that requests need; done once. */
  prepare(connection: ZookeeperConnection): Promise<void>;
  /** The lasting connection has been made, for the first time or again. */
  connected(connection: ZookeeperConnection): void;
}

const AGAIN_MS = 200;
/** The session timeout of the lasting connection, which pings every second. */
const SESSION_MS = 10_000;

export class ZookeeperServers {
  readonly #options: ServersOptions;
  #at: number;
  #opened: Promise<ZookeeperConnection> | null = null;
  #again: ReturnType<typeof setTimeout> | null = null;
  #isPrepared = false;
  #isClosed = false;

  constructor(options: ServersOptions) {
    this.#options = options;
    this.#at = options.first;
    this.#keepOpen();
  }

  /** The lasting connection. @throws StoreError */
  open(): Promise<ZookeeperConnection> {
    if (this.#isClosed) return Promise.reject(new StoreError("zookeeper: closed", false));
    this.#opened ??= this.#connect();
    return this.#opened;
  }

  /** Opens a short connection, which the caller ends. @param session null: a new one. @throws StoreError */
  async visit(timeoutMs: number, session: SessionKey | null): Promise<ZookeeperConnection> {
    if (!this.#isPrepared) await this.open();
    return this.#to({ timeoutMs, session });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#again !== null) clearTimeout(this.#again);
    const connection = await this.#opened?.catch(() => null);
    await connection?.ask({ type: "closeSession" }).catch(() => {});
    connection?.end();
  }

  async #connect(): Promise<ZookeeperConnection> {
    const at = this.#at;
    const connection = await this.#to({ timeoutMs: SESSION_MS, session: null }).catch((error: unknown) => {
      this.#lost();
      throw error;
    });
    connection.onEnd = () => {
      this.#leave(at);
      this.#lost();
    };
    try {
      if (!this.#isPrepared) await this.#options.prepare(connection);
      this.#isPrepared = true;
      this.#options.connected(connection);
      return connection;
    } catch (error) {
      connection.end();
      throw error;
    }
  }

  async #to(asked: { timeoutMs: number; session: SessionKey | null }): Promise<ZookeeperConnection> {
    const { places, tls } = this.#options;
    const at = this.#at;
    try {
      return await ZookeeperConnection.open(places[at % places.length] as Place, { ...asked, tls });
    } catch (error) {
      this.#leave(at);
      throw error;
    }
  }

  /** Later connections use the next server. Several that failed at the same server advance only once. */
  #leave(at: number): void {
    if (this.#at === at) this.#at += 1;
  }

  #lost(): void {
    this.#opened = null;
    if (this.#isClosed) return;
    if (this.#again !== null) clearTimeout(this.#again);
    this.#again = setTimeout(() => this.#keepOpen(), AGAIN_MS).unref();
  }

  #keepOpen(): void {
    this.open().catch(() => {}); // It is tried again.
  }
}
