/**
 * Redis as Debian packages it, one server: with replicas it acknowledges before they have the write, and may lose it. What it
 * acknowledges here is on its disk. The load is by `ioredis`, which sends in one write what one turn of the loop asks for.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Redis as Client } from "ioredis";
import { freePorts } from "../multicast/group.ts";
import { loadOf } from "./load.ts";
import { Servers } from "./servers.ts";
import type { Loaded, Throughput, Work } from "./subject.ts";

const run = promisify(execFile);
const PROGRAM = "redis-server";
const VALUE = "x".repeat(64);
const KEYS = 100;
const LOCK_MS = 10_000;
/** Redis tells nobody that a lock is free: who wants it asks again. */
const RETRY_MS = 1;
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/** Null: it is not installed. */
export async function redisVersion(): Promise<string | null> {
  try {
    const { stdout } = await run(PROGRAM, ["--version"]);
    return /v=(\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

export class Redis implements Loaded<Exclude<Work, "watch">> {
  readonly hasWatches = false;
  readonly #servers = new Servers("redis", PROGRAM);
  readonly #client: Client;

  private constructor(
    readonly name: string,
    port: number,
  ) {
    this.#client = new Client(port, "127.0.0.1", { enableAutoPipelining: true });
    this.#client.on("error", () => {}); // It listens a moment later.
  }

  static async start(): Promise<Redis> {
    const [port = 0] = await freePorts(1);
    const redis = new Redis(`Redis ${await redisVersion()}, one server`, port);
    const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    await redis.#servers.start("one", ["--port", String(port), "--bind", "127.0.0.1", ...durable]);
    await redis.#client.ping();
    return redis;
  }

  load(work: Exclude<Work, "watch">, inFlight: number, ms: number): Promise<Throughput> {
    const client = this.#client;
    const deeds: Readonly<Record<typeof work, (client: number, turn: number) => Promise<unknown>>> = {
      write: (number, turn) => client.set(`key-${number}-${turn % KEYS}`, VALUE),
      read: (number, turn) => client.get(`key-${number}-${turn % KEYS}`),
      lock: async (number, turn) => {
        const token = `${number}-${turn}`;
        while ((await client.set("lock", token, "PX", LOCK_MS, "NX")) === null)
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        await client.eval(RELEASE, 1, "lock", token);
      },
    };
    return loadOf(inFlight, ms, deeds[work]);
  }

  residentBytes(): number {
    return this.#servers.residentBytes();
  }

  end(): void {
    this.#client.disconnect();
    this.#servers.end();
  }
}
