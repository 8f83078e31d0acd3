/** The servers for clients (processes that are not members): opened by `join()`, closed with the member. */
export interface Door {
  /** The URL at which it is reached. */
  readonly url: string;
  close(): Promise<void>;
}

export class Doors {
  clients: Door | null = null;
  etcd: Door | null = null;

  async close(): Promise<void> {
    await Promise.all([this.clients?.close(), this.etcd?.close()]);
  }
}
