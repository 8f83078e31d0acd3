/**
 * Redis as an engine: one hash of entries with their revisions, a list of keys in order, a log of changes, and a key that expires for
 * each session. Whatever reads or changes more than one of them is a script, which Redis runs whole.
 */
import type { EngineJoinOptions, ExternalEngine } from "../cluster/services/external-engine.ts";
import * as may from "../cluster/services/known-options.ts";
import { type Rules, requireOptions } from "../cluster/services/known-options.ts";
import { clientLibrary } from "./client-library.ts";
import { joinStore } from "./engine-member.ts";
import { type RedisScript, redisScripts } from "./redis-scripts.ts";
import {
  type Check,
  KEPT_CHANGES,
  KEPT_LENGTH,
  type RangeRequest,
  type Store,
  type StoreChange,
  type StoreEntry,
  StoreError,
  type Write,
} from "./store.ts";

export interface RedisOptions {
  /** Such as `redis://:password@10.0.0.1:6379/0`. */
  readonly url: string;
  /** Before the names of its keys, which all who coordinate with each other share: letters, digits and `-`. Default `coterie`. */
  readonly prefix?: string | undefined;
  /** Whose certificate the server must have, and so on: as `ioredis` takes it. */
  readonly tls?: object | undefined;
}

/** What is used of `ioredis`. */
interface Library {
  readonly Redis: new (url: string, options: object) => Client;
}
interface Client {
  eval(script: string, keys: number, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: "error" | "message" | "ready", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

const MAX_KEYS = 256;
/** A server that owes an answer and has said nothing for so long is connected to anew. */
const SILENT_MS = 2_000;
const AGAIN_MS = { first: 20, most: 500 } as const;

const rules: Rules<RedisOptions> = {
  url: may.needed(may.text),
  prefix: {
    wanted: "a text of 1 to 40 letters, digits and -",
    accepts: (value) => typeof value === "string" && /^[\w-]{1,40}$/.test(value),
  },
  tls: may.fields,
};

/**
 * @example
 * const member = await join({ engine: redis({ url: "redis://10.0.0.1:6379" }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError for options that cannot be; on joining, `no-library` without the package `ioredis`.
 */
export function redis(options: RedisOptions): ExternalEngine {
  requireOptions<RedisOptions>("redis", options, rules);
  const open = (): Promise<Store> => openRedis(options);
  return { name: "redis", join: (platform, joined: EngineJoinOptions) => joinStore(platform, open, joined) };
}

async function openRedis({ url, prefix = "coterie", tls }: RedisOptions): Promise<Store> {
  const { Redis } = await clientLibrary<Library>("ioredis", "redis");
  const config = {
    ...(tls === undefined ? {} : { tls }),
    // What was sent is not sent again by the library: whether that is right is ours to say.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    connectTimeout: SILENT_MS,
    socketTimeout: SILENT_MS,
    retryStrategy: (times: number) => Math.min(AGAIN_MS.most, AGAIN_MS.first * 2 ** Math.min(times, 10)),
  };
  const listening = new Redis(url, { ...config, autoResubscribe: false });
  listening.on("error", () => {}); // It connects again.
  listening.on("ready", () => void listening.subscribe(`{${prefix}}`).catch(() => {}));
  const client = new Redis(url, config);
  return new RedisStore(client, listening, `{${prefix}}`);
}

class RedisStore implements Store {
  readonly name = "redis";
  readonly maxKeys = MAX_KEYS;
  readonly #client: Client;
  readonly #listening: Client;
  /** In braces, so that a cluster keeps all of it in one place. */
  readonly #prefix: string;
  readonly #listeners = new Set<() => void>();
  /** Why there is no connection, which a call that finds none does not say. */
  #unconnected: Error | null = null;

  constructor(client: Client, listening: Client, prefix: string) {
    this.#client = client;
    this.#listening = listening;
    this.#prefix = prefix;
    const tell = (): void => {
      for (const listener of this.#listeners) listener();
    };
    listening.on("message", tell);
    client.on("ready", tell); // There may have been some before.
    client.on("error", (error) => {
      this.#unconnected = error;
    }); // It connects again.
  }

  async get(key: string): Promise<StoreEntry | null> {
    const [entry] = entriesOf(key, await this.#run("get", key));
    return entry ?? null;
  }

  async range({ from, to, limit }: RangeRequest) {
    const [revision, ...rest] = textsOf(await this.#run("range", from, to, limit + 1));
    const entries: StoreEntry[] = [];
    for (let at = 0; at < rest.length; at += 2) entries.push(...entriesOf(rest[at] as string, rest[at + 1]));
    return { revision: Number(revision), entries: entries.slice(0, limit), isMore: entries.length > limit };
  }

  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<number | null> {
    const revision = Number(await this.#run("commit", JSON.stringify({ checks, writes }), KEPT_CHANGES, KEPT_LENGTH));
    return revision < 0 ? null : revision;
  }

  async changes(prefix: string, after: number) {
    const [revision, forgotten, ...lines] = textsOf(await this.#run("changes", after));
    if (after < Number(forgotten)) return null;
    const changes = lines.flatMap((line) => changesOf(line)).filter(({ key }) => key.startsWith(prefix));
    return { revision: Number(revision), changes };
  }

  async revision(): Promise<number> {
    return Number(await this.#run("revision"));
  }

  async openSession(ttlMs: number): Promise<number> {
    return Number(await this.#run("openSession", Math.ceil(ttlMs)));
  }

  async keepAlive(session: number): Promise<boolean> {
    return Number(await this.#run("keepAlive", session)) === 1;
  }

  async endSession(session: number): Promise<void> {
    await this.#run("endSession", session);
  }

  async living(sessions: readonly number[]): Promise<ReadonlySet<number>> {
    return new Set(textsOf(await this.#run("living", ...sessions)).map(Number));
  }

  onHint(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    this.#client.disconnect();
    this.#listening.disconnect();
    return Promise.resolve();
  }

  async #run(script: RedisScript, ...args: (string | number)[]): Promise<unknown> {
    try {
      return await this.#client.eval(redisScripts[script], 1, this.#prefix, ...args);
    } catch (error) {
      throw failure(error as Error, this.#unconnected);
    }
  }
}

/** @param kept its revision, a space and its value. */
function entriesOf(key: string, kept: unknown): StoreEntry[] {
  if (typeof kept !== "string") return [];
  const space = kept.indexOf(" ");
  return [{ key, value: kept.slice(space + 1), revision: Number(kept.slice(0, space)) }];
}

function changesOf(line: string): StoreChange[] {
  const space = line.indexOf(" ");
  const revision = Number(line.slice(0, space));
  const writes = JSON.parse(line.slice(space + 1)) as readonly Write[];
  return writes.map(({ key, value }) => ({ key, value, revision }));
}

const textsOf = (answer: unknown): string[] => (Array.isArray(answer) ? answer.map(String) : []);

/** Redis answers with an error before it does anything, and a connection that is not there has heard nothing. */
function failure(error: Error, unconnected: Error | null): StoreError {
  const isUnheard = error.message.startsWith("Stream isn't writeable");
  const cause = isUnheard ? (unconnected ?? error) : error;
  return new StoreError(`redis: ${cause.message}`, !isUnheard && error.name !== "ReplyError", { cause });
}
