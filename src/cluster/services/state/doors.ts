/** A server for clients (processes that are not members). `join()` opens it, and it closes with the member. */
export interface Door {
  /** The server's URL. */
  readonly url: string;
  close(): Promise<void>;
}

/** A member's running servers. */
export class Doors {
  clients: Door | null = null;
  etcd: Door | null = null;

  async close(): Promise<void> {
    await Promise.all([this.clients?.close(), this.etcd?.close()]);
  }
}
