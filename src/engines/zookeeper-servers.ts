/**
 * The connections to the ZooKeeper servers. One lasting connection uses the same server for as long as it answers, and
 * reconnects when it is lost. Other connections are short. The lasting connection has a new ZooKeeper session each
 * time, which does not own any znodes.
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
  /** Creates the znodes that requests need. Called once. */
  prepare(connection: ZookeeperConnection): Promise<void>;
  /** Called when the lasting connection has been established, for the first time or again. */
  connected(connection: ZookeeperConnection): void;
}

const AGAIN_MS = 200;
/** The session timeout for the lasting connection, which sends a ping every second. */
const SESSION_MS = 10_000;

/** Connects to one server, and to the next one after a failure. */
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

  /**
   * Returns the lasting connection, opening it if necessary.
   * @throws StoreError
   */
  open(): Promise<ZookeeperConnection> {
    if (this.#isClosed) return Promise.reject(new StoreError("zookeeper: closed", false));
    this.#opened ??= this.#connect();
    return this.#opened;
  }

  /**
   * Opens a short connection, which the caller must end.
   * @param session the session to resume, or null for a new one
   * @throws StoreError
   */
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

  /**
   * Makes later connections use the next server. If several connections failed at the same server, only the first one
   * advances.
   */
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
    this.open().catch(() => {}); // This is retried.
  }
}
