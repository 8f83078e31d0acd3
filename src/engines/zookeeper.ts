/**
 * The API of `join()` on ZooKeeper.
 *
 * Each key is a znode, its revision is the zxid of its last change, and a commit is a single `multi`. Three things
 * require care:
 *
 * - A `multi` checks the versions of znodes, and these restart when a znode is deleted and created again. Each commit
 *   therefore also checks one of 64 `deleted` znodes, which is set by every deletion of a key in its share. A read of
 *   an existing key is valid while both versions are unchanged. A `multi` cannot check directly that a key does not
 *   exist, but it can do so by creating and deleting the key.
 * - A server answers reads from its own state, and `sync` may reach a leader that has been deposed without knowing it.
 *   Reads are therefore preceded by a `multi` that changes nothing. It needs a majority, and later requests are
 *   answered after it.
 * - The leader learns about sessions from other servers only from time to time, so it may expire a session earlier than
 *   `ttlMs` after a server's last answer. But it learns at once when a connection resumes a session. Each Coterie
 *   session therefore has a ZooKeeper session of its own, with one ephemeral znode and no open connection. To keep it
 *   alive, the client resumes it, sets the znode (which needs a majority, and so proves that the leader is still the
 *   leader) and disconnects. A new leader gives every session its full timeout.
 *
 * @module coterie/engines/zookeeper
 */
import type { ConnectionOptions } from "node:tls";
import type { ExternalEngine } from "../cluster/services/external-engine.ts";
import type { Rules } from "../cluster/services/known-options.ts";
import * as may from "../cluster/services/known-options.ts";
import { UsageError } from "../core/errors.ts";
import { externalEngine } from "./engine-member.ts";
import {
  byCodePoint,
  type Check,
  Hints,
  type RangeRequest,
  refused,
  type Store,
  type StoreEntry,
  StoreError,
  type Write,
} from "./store.ts";
import { ZookeeperChanges } from "./zookeeper-changes.ts";
import type { Place, ZookeeperConnection } from "./zookeeper-connection.ts";
import { folderOf, isOfMap, ZookeeperPaths } from "./zookeeper-paths.ts";
import { ZookeeperServers } from "./zookeeper-servers.ts";
import {
  type Answer,
  NO_NODE,
  NODE_EXISTS,
  OK,
  type OpenedSession,
  SESSION_EXPIRED,
  type Stat,
  type Step,
} from "./zookeeper-wire.ts";

/** Options for the `zookeeper` engine. */
export interface ZookeeperOptions {
  /** The servers' addresses, such as `10.0.0.1:2181`. */
  readonly servers: readonly string[];
  /**
   * The znode that contains all others. All processes that coordinate with each other must use the same one. Default:
   * `/coterie`.
   */
  readonly path?: string | undefined;
  /** TLS settings: the options for Node's `tls.connect`. */
  readonly tls?: ConnectionOptions | undefined;
}

const MAX_KEYS = 128;
/** The maximum size of a request. Servers accept 1 MiB minus one byte, unless `jute.maxbuffer` is set. */
const MAX_BYTES = 1_000_000;
/** The overhead of a step, in addition to its path and value. */
const STEP_BYTES = 64;
const MAX_TRIES = 30;
const DEFAULT_PORT = 2181;

const rules: Rules<ZookeeperOptions> = {
  servers: may.needed({
    wanted: 'a list of addresses such as "127.0.0.1:2181"',
    accepts: (value) => Array.isArray(value) && value.length > 0 && value.every((each) => placeOf(each) !== null),
  }),
  path: {
    wanted: "a path of letters, digits, - and _ such as /coterie",
    accepts: (value) => typeof value === "string" && /^(?:\/[\w-]{1,40}){1,8}$/.test(value),
  },
  tls: may.fields,
};

/**
 * Runs `join()` on a ZooKeeper ensemble.
 *
 * @example
 * const member = await join({ engine: zookeeper({ servers: ["10.0.0.1:2181", "10.0.0.2:2181"] }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid; on joining, `session-too-long` if the servers do not allow a session of
 * `sessionMs`
 */
export function zookeeper(options: ZookeeperOptions): ExternalEngine {
  return externalEngine("zookeeper", options, rules, (_options, random) =>
    openZookeeper(options, random.natural(options.servers.length)),
  );
}

/**
 * Opens the store without `join()`.
 * @param perSegment the number of changes retained per segment
 */
export function openZookeeper(options: ZookeeperOptions, first = 0, perSegment?: number): Store {
  const places = options.servers.flatMap((server) => placeOf(server) ?? []);
  const paths = new ZookeeperPaths(options.path ?? "/coterie");
  return new ZookeeperStore(paths, new ZookeeperChanges(paths, perSegment), { places, tls: options.tls, first });
}

function placeOf(server: unknown): Place | null {
  const text = `zookeeper://${String(server)}`;
  const url = typeof server === "string" && URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.hostname === "" || url.pathname !== "") return null;
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || DEFAULT_PORT) };
}

/** The state of a key when it was read. */
interface Seen {
  /** The metadata of the key's znode. Null if the key does not exist. */
  readonly stat: Stat | null;
  /** The version of the `deleted` znode for the key's share. */
  readonly shardVersion: number;
}

class ZookeeperStore implements Store {
  readonly name = "zookeeper";
  readonly maxKeys = MAX_KEYS;
  readonly #paths: ZookeeperPaths;
  readonly #changes: ZookeeperChanges;
  readonly #servers: ZookeeperServers;
  readonly #hints = new Hints();
  readonly onHint = this.#hints.on;
  /** The ZooKeeper session for each session that belongs to this process. */
  readonly #sessions = new Map<number, { readonly session: OpenedSession; readonly ttlMs: number }>();
  /** The current read barrier, which is shared by the reads in one turn of the event loop. */
  #barrier: Promise<number> | null = null;

  constructor(
    paths: ZookeeperPaths,
    changes: ZookeeperChanges,
    servers: { places: readonly Place[]; tls: ConnectionOptions | undefined; first: number },
  ) {
    this.#paths = paths;
    this.#changes = changes;
    this.#servers = new ZookeeperServers({
      ...servers,
      prepare: (connection) => this.#prepare(connection),
      connected: (connection) => {
        connection.onWatch = () => this.#watch(connection);
        this.#watch(connection); // Changes made before the watch was set did not send a hint.
      },
    });
  }

  async get(key: string): Promise<StoreEntry | null> {
    const connection = await this.#servers.open();
    return (await this.#read(connection, () => this.#entries(connection, [key])))[0] ?? null;
  }

  /**
   * Reads a range as of a single revision. Keys are read one by one, and changes made in the meantime are applied to
   * the result. All keys must belong to one map, or to one folder whose changes are not retained.
   */
  async range(range: RangeRequest) {
    const connection = await this.#servers.open();
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const found = await this.#rangeOnce(connection, range);
      if (found !== null) return found;
    }
    throw new StoreError("zookeeper: concurrent changes interfered with a range read", false);
  }

  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<number | null> {
    const connection = await this.#servers.open();
    const written = new Map(writes.map(({ key, value }) => [key, value]));
    const keys = [...new Set([...checks.map(({ key }) => key), ...written.keys()])];
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const seen = await this.#seen(connection, keys);
      if (checks.some(({ key, revision }) => (seen.get(key)?.stat?.mzxid ?? 0) !== revision)) return null;
      const steps = [
        ...this.#keySteps(seen, written),
        ...(await this.#changes.steps(
          connection,
          writes.filter(({ key }) => isOfMap(key)),
        )),
      ];
      if (writes.length > 0) steps.push({ type: "set", path: this.#paths.last, data: "", version: -1 });
      requireRoom(steps);
      const { zxid, results = [] } = await connection.done({ type: "multi", steps });
      const failed = results.findIndex(({ code }) => code !== OK);
      if (failed < 0) {
        this.#done(connection, results);
        return results.at(-1)?.stat?.mzxid ?? zxid;
      }
      this.#changes.forgetSegment();
      const { type, path } = steps[failed] as Step;
      if (type === "create" && results[failed]?.code === NO_NODE) await this.#makeFolder(connection, path);
    }
    throw new StoreError("zookeeper: concurrent changes interfered with a change", false);
  }

  async changes(prefix: string, after: number) {
    const connection = await this.#servers.open();
    return this.#changesSince(connection, prefix, after);
  }

  async revision(): Promise<number> {
    return this.#pass(await this.#servers.open());
  }

  async openSession(ttlMs: number): Promise<number> {
    const connection = await this.#servers.visit(Math.ceil(ttlMs), null);
    try {
      const { session } = connection;
      if (session.timeoutMs < ttlMs) throw tooLong(ttlMs, session.timeoutMs);
      const { stat } = await connection.done({ type: "set", path: this.#paths.sessions, data: "", version: -1 });
      const number = (stat as Stat).mzxid;
      const path = this.#paths.session(number);
      await connection.done({ type: "create", path, data: "", kind: "ephemeral" });
      this.#sessions.set(number, { session, ttlMs });
      return number;
    } finally {
      connection.end();
    }
  }

  async keepAlive(session: number): Promise<boolean> {
    const own = this.#sessions.get(session);
    if (own === undefined) return false;
    const connection = await this.#servers.visit(Math.ceil(own.ttlMs), own.session);
    try {
      if (connection.session.timeoutMs < own.ttlMs) return false; // 0 means that the session has ended.
      const set = { type: "set", path: this.#paths.session(session), data: "", version: -1 } as const;
      return (await connection.done(set, NO_NODE, SESSION_EXPIRED)).code === OK;
    } finally {
      connection.end();
    }
  }

  async endSession(session: number): Promise<void> {
    this.#sessions.delete(session);
    const connection = await this.#servers.open();
    await connection.done({ type: "delete", path: this.#paths.session(session), version: -1 }, NO_NODE);
    await connection.done({ type: "set", path: this.#paths.last, data: "", version: -1 });
  }

  async living(sessions: readonly number[]): Promise<ReadonlySet<number>> {
    const connection = await this.#servers.open();
    const paths = sessions.map((session) => this.#paths.session(session));
    const answers = await this.#read(connection, () =>
      Promise.all(paths.map((path) => connection.done({ type: "stat", path }, NO_NODE))),
    );
    return new Set(sessions.filter((_session, at) => answers[at]?.code === OK));
  }

  close(): Promise<void> {
    return this.#servers.close();
  }

  async #prepare(connection: ZookeeperConnection): Promise<void> {
    const { roots, entries, sessions, changes, last, shards, allShards } = this.#paths;
    const first = this.#paths.segment(0);
    // The first segment is created once, together with `changes`. Later, other segments may have replaced it.
    const begun = (await connection.done({ type: "stat", path: changes }, NO_NODE)).code === OK;
    const all = [...roots, entries, sessions, last, shards, ...allShards];
    await Promise.all(all.map((path) => this.#make(connection, path, "persistent")));
    if (begun) return;
    const steps: Step[] = [
      { type: "create", path: changes, data: "0", kind: "persistent" },
      { type: "create", path: first, data: "", kind: "persistent" },
    ];
    // This fails if another process creates them first. The next attempt then finds them.
    await connection.done({ type: "multi", steps });
  }

  async #make(connection: ZookeeperConnection, path: string, kind: "persistent" | "container"): Promise<void> {
    await connection.done({ type: "create", path, data: "", kind }, NODE_EXISTS);
  }

  /** Creates the folder for an entry. */
  #makeFolder(connection: ZookeeperConnection, path: string): Promise<void> {
    return this.#make(connection, path.slice(0, path.lastIndexOf("/")), "container");
  }

  /** Sets a watch for the next change, and sends a hint, since something may have changed before the watch was set. */
  #watch(connection: ZookeeperConnection): void {
    // If this fails, the watch is set after the next reconnect.
    connection.ask({ type: "get", path: this.#paths.last, isWatched: true }).catch(() => {});
    this.#hints.send();
  }

  /**
   * Waits for a read barrier: later reads see every write that was acknowledged before it.
   * @returns a zxid such that later reads are complete up to it
   */
  #pass(connection: ZookeeperConnection): Promise<number> {
    if (this.#barrier === null) {
      const steps: Step[] = [{ type: "check", path: this.#paths.root, version: -1 }];
      this.#barrier = connection.done({ type: "multi", steps }).then(({ zxid }) => zxid);
      queueMicrotask(() => (this.#barrier = null));
    }
    return this.#barrier;
  }

  /** Performs reads. They are sent together with the barrier, and the server answers them after it. */
  async #read<T>(connection: ZookeeperConnection, work: () => Promise<T>): Promise<T> {
    const [, found] = await Promise.all([this.#pass(connection), work()]);
    return found;
  }

  async #entries(connection: ZookeeperConnection, keys: readonly string[]): Promise<StoreEntry[]> {
    const paths = keys.map((key) => this.#paths.entry(key));
    const answers = await Promise.all(
      paths.map((path) => connection.done({ type: "get", path, isWatched: false }, NO_NODE)),
    );
    return answers.flatMap(({ data, stat }, at) =>
      data === undefined || stat === undefined ? [] : [{ key: keys[at] as string, value: data, revision: stat.mzxid }],
    );
  }

  async #changesSince(connection: ZookeeperConnection, prefix: string, after: number) {
    const [passed, changes] = await Promise.all([this.#pass(connection), this.#changes.since(connection, after)]);
    if (changes === null) return null;
    // This may include records that were created in the meantime. If so, all records up to the last of them are
    // included.
    const revision = Math.max(passed, changes.at(-1)?.revision ?? 0);
    return { revision, changes: changes.filter(({ key }) => key.startsWith(prefix)) };
  }

  /** Reads a range once. Returns null if too much has changed in the meantime, so that the range must be read again. */
  async #rangeOnce(connection: ZookeeperConnection, { from, to, limit }: RangeRequest) {
    const isWithin = (key: string): boolean => byCodePoint(key, from) >= 0 && byCodePoint(key, to) < 0;
    const path = this.#paths.folder(from);
    const [begun, { names = [] }] = await Promise.all([
      this.#pass(connection),
      connection.done({ type: "children", path }, NO_NODE),
    ]);
    const keys = names.map((name) => this.#paths.key(from, name)).filter(isWithin);
    keys.sort(byCodePoint);
    const entries = await this.#entries(connection, keys.slice(0, limit + 1));
    const since = isOfMap(from)
      ? await this.#changesSince(connection, folderOf(from), begun)
      : { revision: begun, changes: [] };
    if (since === null) return null;
    const all = new Map<string, StoreEntry | null>(keys.slice(limit + 1).map((key) => [key, null]));
    for (const entry of entries) all.set(entry.key, entry);
    for (const { key, value, revision } of since.changes.filter((change) => isWithin(change.key))) {
      if (value === null) all.delete(key);
      else all.set(key, { key, value, revision });
    }
    const first = [...all.keys()].sort(byCodePoint).slice(0, limit);
    const shown = first.map((key) => all.get(key) ?? null).filter((entry) => entry !== null);
    if (shown.length < first.length) return null;
    return { revision: since.revision, entries: shown, isMore: all.size > limit };
  }

  async #seen(connection: ZookeeperConnection, keys: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
    const shards = [...new Set(keys.map((key) => this.#paths.shard(key)))];
    const stat = (path: string): Promise<Answer> => connection.done({ type: "stat", path }, NO_NODE);
    // Read the shards first, since they reveal deletions that happen during the reads.
    const [shardStats, stats] = await Promise.all([
      Promise.all(shards.map(stat)),
      Promise.all(keys.map((key) => stat(this.#paths.entry(key)))),
    ]);
    const versions = new Map(shards.map((shard, at) => [shard, shardStats[at]?.stat?.version ?? -1]));
    return new Map(
      keys.map((key, at) => {
        const shardVersion = versions.get(this.#paths.shard(key)) ?? -1;
        return [key, { stat: stats[at]?.stat ?? null, shardVersion }];
      }),
    );
  }

  /** Returns steps that succeed only if no key has changed since it was read. */
  #keySteps(seen: ReadonlyMap<string, Seen>, written: ReadonlyMap<string, string | null>): Step[] {
    const shards = new Map<string, Step>();
    const steps = [...seen].flatMap(([key, { stat, shardVersion }]): Step[] => {
      const path = this.#paths.entry(key);
      const value = written.get(key) ?? null;
      if (stat === null) {
        const made: Step = { type: "create", path, data: value ?? "", kind: "persistent" };
        return value === null ? [made, { type: "delete", path, version: -1 }] : [made];
      }
      const { version } = stat;
      const shard = this.#paths.shard(key);
      const isDeleted = written.has(key) && value === null;
      if (isDeleted) shards.set(shard, { type: "set", path: shard, data: "", version: shardVersion });
      else if (!shards.has(shard)) shards.set(shard, { type: "check", path: shard, version: shardVersion });
      if (isDeleted) return [{ type: "delete", path, version }];
      return [value === null ? { type: "check", path, version } : { type: "set", path, data: value, version }];
    });
    return [...steps, ...shards.values()];
  }

  #done(connection: ZookeeperConnection, results: readonly { readonly path?: string }[]): void {
    const record = results.find(({ path }) => path?.startsWith(`${this.#paths.changes}/`))?.path;
    // If this fails, the next change tries again.
    if (record !== undefined) this.#changes.made(connection, record).catch(() => {});
  }
}

/** @throws UsageError `too-large` if the steps are so large that the server would close the connection */
function requireRoom(steps: readonly Step[]): void {
  const bytes = steps.reduce((sum, step) => {
    const data = "data" in step ? Buffer.byteLength(step.data) : 0;
    return sum + STEP_BYTES + Buffer.byteLength(step.path) + data;
  }, 0);
  if (bytes <= MAX_BYTES) return;
  const text = `expected a change of at most ${MAX_BYTES} bytes (map values count twice), got ${bytes}`;
  throw refused("too-large", `${text}: ZooKeeper does not accept more`);
}

const tooLong = (ttlMs: number, mostMs: number): UsageError =>
  new UsageError(
    "session-too-long",
    `expected sessionMs to be at most ${mostMs}, which is the servers' maxSessionTimeout, got ${ttlMs}`,
  );
