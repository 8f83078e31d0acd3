/** A client of PostgreSQL that writes while nodes fail. */
import { setTimeout as sleep } from "node:timers/promises";
import { clientLibrary } from "../../src/engines/engine-member.ts";
import type { PatroniNode } from "./patroni-node.ts";

interface Connection {
  connect(): Promise<void>;
  query(text: string, values?: readonly number[]): Promise<{ rows: { number: number }[] }>;
  end(): Promise<void>;
  on(event: "error", hear: () => void): void;
}
interface Postgres {
  readonly default: {
    readonly Client: new (options: { connectionString: string; connectionTimeoutMillis?: number }) => Connection;
  };
}
const { default: pg } = await clientLibrary<Postgres>("pg", "postgres");

/** Inserts numbers, one after another, at whichever node accepts them. */
export class Writer {
  /** The numbers whose insertion was acknowledged. */
  readonly acknowledged: number[] = [];
  #isOpen = true;
  #next = 1;
  readonly #done: Promise<void>;

  constructor(readonly nodes: readonly PatroniNode[]) {
    this.#done = this.#run();
  }

  async #run(): Promise<void> {
    while (this.#isOpen) for (const node of this.nodes) await this.#writeTo(node);
  }

  async #writeTo({ url }: PatroniNode): Promise<void> {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("create table if not exists numbers (number int primary key)");
      while (this.#isOpen) {
        const number = this.#next++; // A number whose insertion failed may exist, so it is not used again.
        await client.query("insert into numbers values ($1)", [number]);
        this.acknowledged.push(number);
        await sleep(5);
      }
    } catch {
      await sleep(50); // The node is down, or is a standby, which refuses writes.
    } finally {
      client.end().catch(() => {});
    }
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#done;
  }
}

/** Returns the numbers that a node has stored. */
export async function storedIn({ url }: PatroniNode): Promise<Set<number>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("select number from numbers");
  await client.end();
  return new Set(rows.map(({ number }) => number));
}
