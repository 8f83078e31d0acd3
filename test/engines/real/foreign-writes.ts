/**
 * Overwrites a key as an operator can, with the engine's own client and without the other records that Coterie writes.
 */
import { clientLibrary } from "../../../src/engines/engine-member.ts";
import { ZookeeperConnection } from "../../../src/engines/zookeeper-connection.ts";
import { ZookeeperPaths } from "../../../src/engines/zookeeper-paths.ts";

export type ForeignWrite = (port: number, key: string, value: string) => Promise<void>;

/** The part of `pg` that is used. */
interface Postgres {
  readonly default: {
    readonly Client: new (
      config: object,
    ) => {
      connect(): Promise<void>;
      query(text: string, values: string[]): Promise<unknown>;
      end(): Promise<void>;
    };
  };
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Keyed by the names in `realEngines`. */
export const foreignWrites: Readonly<Record<string, ForeignWrite>> = {
  async postgres(port, key, value) {
    const { default: pg } = await clientLibrary<Postgres>("pg", "postgres");
    const client = new pg.Client({ connectionString: `postgres://coterie@127.0.0.1:${port}/postgres` });
    await client.connect();
    await client.query("update coterie.entries set value = $2 where key = $1", [key, value]);
    await client.end();
  },
  async redis(port, key, value) {
    const { Redis } = await import("ioredis");
    const client = new Redis(`redis://127.0.0.1:${port}`);
    await client.hset("{coterie}:entries", key, `1 ${value}`);
    client.disconnect();
  },
  async etcd(port, key, value) {
    const body = JSON.stringify({ key: base64(`coterie/${key}`), value: base64(value) });
    await fetch(`http://127.0.0.1:${port}/v3/kv/put`, { method: "POST", body });
  },
  async nats(port, key, value) {
    const { connect } = await import("@nats-io/transport-node");
    const connection = await connect({ servers: [`nats://127.0.0.1:${port}`] });
    const request = { type: "commit", checks: [], writes: [{ key, value }] };
    await connection.request("coterie.log", JSON.stringify({ form: 1, type: "request", id: "operator", request }));
    await connection.close();
  },
  async zookeeper(port, key, value) {
    const asked = { tls: undefined, timeoutMs: 10_000, session: null };
    const connection = await ZookeeperConnection.open({ host: "127.0.0.1", port }, asked);
    const path = new ZookeeperPaths("/coterie").entry(key);
    await connection.done({ type: "set", path, data: value, version: -1 });
    connection.end();
  },
};
