/**
 * The API of `join()` on Redis.
 *
 * The state consists of a hash of entries with their revisions, a sorted list of keys, a log of changes, and one
 * expiring key per session. Every operation that reads or changes more than one of these is a script, which Redis runs
 * atomically.
 *
 * @module coterie/engines/redis
 */
import type { ExternalEngine } from "../cluster/services/external-engine.ts";
import type { Rules } from "../cluster/services/known-options.ts";
import * as may from "../cluster/services/known-options.ts";
import { clientLibrary, externalEngine } from "./engine-member.ts";
import {
  type Check,
  Hints,
  KEPT_CHANGES,
  KEPT_LENGTH,
  type RangeRequest,
  type Store,
  type StoreChange,
  type StoreEntry,
  StoreError,
  type Write,
} from "./store.ts";

/** Options for the `redis` engine. */
export interface RedisOptions {
  /** The server's URL, such as `redis://:password@10.0.0.1:6379/0`. */
  readonly url: string;
  /**
   * The prefix for the names of its keys. It consists of letters, digits and `-`. All processes that coordinate with
   * each other must use the same prefix. Default: `coterie`.
   */
  readonly prefix?: string | undefined;
  /** TLS settings, passed to `ioredis` as the `tls` option. */
  readonly tls?: object | undefined;
}

/** The part of `ioredis` that is used here. */
interface Library {
  readonly Redis: new (url: string, options: object) => Client;
}
interface Client {
  eval(script: string, keys: number, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: "error" | "message" | "ready", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

/**
 * The scripts that Redis runs atomically. KEYS[1] is the prefix in braces. The keys are: `entries`, a hash of
 * `REVISION VALUE`; `keys`, the keys of all entries in order; `changes`, a sorted set of `REVISION WRITES` for changes
 * to maps; `length`, the size of `changes`; `revision`; `forgotten`; and `session:ID`, which expires.
 */
const NAMED = `
local function named(what) return KEYS[1] .. ':' .. what end
local function revision() return tonumber(redis.call('GET', named('revision')) or '0') end
`;

const texts = {
  get: "return redis.call('HGET', named('entries'), ARGV[1])",
  range: `
local answer = { string.format('%d', revision()) }
local keys = redis.call('ZRANGEBYLEX', named('keys'), '[' .. ARGV[1], '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, key in ipairs(keys) do
  answer[#answer + 1] = key
  answer[#answer + 1] = redis.call('HGET', named('entries'), key)
end
return answer`,
  commit: `
local asked = cjson.decode(ARGV[1])
local kept, keptLength = tonumber(ARGV[2]), tonumber(ARGV[3])
for _, check in ipairs(asked.checks) do
  local entry = redis.call('HGET', named('entries'), check.key)
  local at = entry and tonumber(string.match(entry, '^%d+')) or 0
  if at ~= check.revision then return '-1' end
end
if #asked.writes == 0 then return string.format('%d', revision()) end
local at = redis.call('INCR', named('revision'))
local text = string.format('%d', at)
local logged = {}
for _, write in ipairs(asked.writes) do
  if write.value == cjson.null then
    redis.call('HDEL', named('entries'), write.key)
    redis.call('ZREM', named('keys'), write.key)
  else
    redis.call('HSET', named('entries'), write.key, text .. ' ' .. write.value)
    redis.call('ZADD', named('keys'), 0, write.key)
  end
  if string.sub(write.key, 1, 2) == 'm/' then logged[#logged + 1] = write end
end
local length = tonumber(redis.call('GET', named('length')) or '0')
if #logged > 0 then
  local line = text .. ' ' .. cjson.encode(logged)
  redis.call('ZADD', named('changes'), at, line)
  length = length + #line
end
local forgotten = math.max(tonumber(redis.call('GET', named('forgotten')) or '0'), at - kept)
while true do
  local oldest = redis.call('ZRANGE', named('changes'), 0, 0, 'WITHSCORES')
  local score = tonumber(oldest[2])
  if not score or score == at or (score > at - kept and length <= keptLength) then break end
  redis.call('ZREM', named('changes'), oldest[1])
  length = length - #oldest[1]
  forgotten = math.max(forgotten, score)
end
redis.call('SET', named('length'), string.format('%d', length))
redis.call('SET', named('forgotten'), string.format('%d', forgotten))
redis.call('PUBLISH', KEYS[1], text)
return text`,
  changes: `
local answer = { string.format('%d', revision()), redis.call('GET', named('forgotten')) or '0' }
for _, line in ipairs(redis.call('ZRANGEBYSCORE', named('changes'), '(' .. ARGV[1], '+inf')) do answer[#answer + 1] = line end
return answer`,
  revision: "return string.format('%d', revision())",
  openSession: `
local at = redis.call('INCR', named('revision'))
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local id = string.format('%d', ms * 1000 + at % 1000) -- A session that was lost in a restore has a different number.
redis.call('SET', named('session:' .. id), ARGV[1], 'PX', ARGV[1])
return id`,
  keepAlive: `
local session = named('session:' .. ARGV[1])
local ttl = redis.call('GET', session)
if not ttl then return 0 end
return redis.call('PEXPIRE', session, ttl)`,
  endSession: `
redis.call('DEL', named('session:' .. ARGV[1]))
redis.call('PUBLISH', KEYS[1], '')
return 1`,
  living: `
local answer = {}
for _, id in ipairs(ARGV) do
  if redis.call('EXISTS', named('session:' .. id)) == 1 then answer[#answer + 1] = id end
end
return answer`,
} as const;

type RedisScript = keyof typeof texts;

const redisScripts = Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, NAMED + text])) as Readonly<
  Record<RedisScript, string>
>;

const MAX_KEYS = 256;
/** A connection is replaced if an answer is outstanding and the server has sent nothing for this long. */
const SILENT_MS = 2_000;
const AGAIN_MS = { first: 20, most: 500 } as const;

const rules: Rules<RedisOptions> = {
  url: may.needed(may.text),
  prefix: {
    wanted: "a string of 1 to 40 letters, digits and -",
    accepts: (value) => typeof value === "string" && /^[\w-]{1,40}$/.test(value),
  },
  tls: may.fields,
};

/**
 * Runs `join()` on a Redis server.
 *
 * @example
 * const member = await join({ engine: redis({ url: "redis://10.0.0.1:6379" }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid; on joining, `no-library` without the package `ioredis`
 */
export function redis(options: RedisOptions): ExternalEngine {
  return externalEngine("redis", options, rules, openRedis);
}

async function openRedis({ url, prefix = "coterie", tls }: RedisOptions): Promise<Store> {
  const { Redis } = await clientLibrary<Library>("ioredis", "redis");
  const config = {
    ...(tls === undefined ? {} : { tls }),
    // The library must not resend commands, since the recipes decide whether to repeat a command.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    connectTimeout: SILENT_MS,
    socketTimeout: SILENT_MS,
    retryStrategy: (times: number) => Math.min(AGAIN_MS.most, AGAIN_MS.first * 2 ** Math.min(times, 10)),
  };
  const listening = new Redis(url, { ...config, autoResubscribe: false });
  listening.on("error", () => {}); // The library will reconnect.
  listening.on("ready", () => void listening.subscribe(`{${prefix}}`).catch(() => {}));
  const client = new Redis(url, config);
  return new RedisStore(client, listening, `{${prefix}}`);
}

class RedisStore implements Store {
  readonly name = "redis";
  readonly maxKeys = MAX_KEYS;
  readonly #client: Client;
  readonly #listening: Client;
  /** The prefix, in braces so that a Redis cluster keeps all keys in the same hash slot. */
  readonly #prefix: string;
  readonly #hints = new Hints();
  readonly onHint = this.#hints.on;
  /** The reason for a missing connection, which the errors thrown by calls do not include. */
  #unconnected: Error | null = null;

  constructor(client: Client, listening: Client, prefix: string) {
    this.#client = client;
    this.#listening = listening;
    this.#prefix = prefix;
    listening.on("message", this.#hints.send);
    client.on("ready", this.#hints.send); // Changes made before the connection was established did not send a hint.
    client.on("error", (error) => {
      this.#unconnected = error;
    }); // The library will reconnect.
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

/** @param kept the entry's revision, a space and its value */
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

/**
 * Converts an error. Redis reports an error before it changes anything, and without a connection it has not received
 * anything.
 */
function failure(error: Error, unconnected: Error | null): StoreError {
  const isUnheard = error.message.startsWith("Stream isn't writeable");
  const cause = isUnheard ? (unconnected ?? error) : error;
  return new StoreError(`redis: ${cause.message}`, !isUnheard && error.name !== "ReplyError", { cause });
}
