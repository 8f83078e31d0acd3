/**
 * Redis from Debian's package, as a single server: with replicas, it acknowledges writes before the replicas have them,
 * and may lose them. Here, acknowledged writes are on its disk. The client, `ioredis`, sends all requests from one
 * event-loop turn in a single write.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Redis as Client } from "ioredis";
import { keyOf, loadOf, type Throughput, VALUE } from "../load.ts";
import { freePorts, Processes } from "../workers.ts";
import type { System, Work } from "./system.ts";

const run = promisify(execFile);
const PROGRAM = "redis-server";
const LOCK_MS = 10_000;
/** Redis does not notify clients when a lock is released, so they poll at this interval. */
const RETRY_MS = 1;
const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

/** Returns the version of Redis, or null if it is not installed. */
export async function redisVersion(): Promise<string | null> {
  try {
    const { stdout } = await run(PROGRAM, ["--version"]);
    return /v=(\S+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

export class Redis extends Processes implements System<Exclude<Work, "watch">> {
  readonly hasWatches = false;
  readonly #client: Client;

  private constructor(
    readonly name: string,
    port: number,
  ) {
    super("redis");
    this.#client = new Client(port, "127.0.0.1", { enableAutoPipelining: true });
    this.#client.on("error", () => {}); // The server may not be listening yet.
  }

  static async start(): Promise<Redis> {
    const [port = 0] = await freePorts(1);
    const redis = new Redis(`Redis ${await redisVersion()}, one server`, port);
    const durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    await redis.spawn("one", PROGRAM, ["--port", String(port), "--bind", "127.0.0.1", ...durable]);
    await redis.#client.ping();
    return redis;
  }

  load(work: Exclude<Work, "watch">, inFlight: number, ms: number): Promise<Throughput> {
    const client = this.#client;
    const requests: Readonly<Record<typeof work, (client: number, turn: number) => Promise<unknown>>> = {
      write: (number, turn) => client.set(keyOf(number, turn), VALUE),
      read: (number, turn) => client.get(keyOf(number, turn)),
      lock: async (number, turn) => {
        const token = `${number}-${turn}`;
        while ((await client.set("lock", token, "PX", LOCK_MS, "NX")) === null)
          await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        await client.eval(RELEASE, 1, "lock", token);
      },
    };
    return loadOf(inFlight, ms, requests[work]);
  }

  override end(): void {
    this.#client.disconnect();
    super.end();
  }
}
