/**
 * The API of `join()` on etcd.
 *
 * Every change also writes the key `last`. Once a watch has reported the change to `last` at a revision, it has
 * therefore reported every change up to that revision. A session is an etcd lease with one key attached to it.
 *
 * @module coterie/engines/etcd
 */
import type { ExternalEngine } from "../cluster/services/external-engine.ts";
import type { Rules } from "../cluster/services/known-options.ts";
import * as may from "../cluster/services/known-options.ts";
import { externalEngine } from "./engine-member.ts";
import { EtcdHttp, type EtcdPlace } from "./etcd-http.ts";
import {
  behind,
  type Check,
  Hints,
  type RangeRequest,
  type Store,
  type StoreChange,
  type StoreEntry,
  StoreError,
  type Write,
} from "./store.ts";

/** Options for the `etcd` engine. */
export interface EtcdOptions extends EtcdPlace {
  /**
   * The prefix for its keys. All processes that coordinate with each other must use the same prefix. Default:
   * `coterie/`.
   */
  readonly prefix?: string | undefined;
}

/** A key-value pair as JSON: 64-bit numbers are strings, and bytes are base64. */
interface Pair {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision?: string;
}
interface Header {
  readonly header?: { readonly revision?: string };
}
type RangeAnswer = Header & { readonly kvs?: readonly Pair[]; readonly more?: boolean };
interface WatchAnswer {
  readonly canceled?: boolean;
  readonly compact_revision?: string;
  readonly events?: readonly { readonly type?: string; readonly kv: Pair }[];
}

/** The maximum number of keys. etcd's `--max-txn-ops` is 128 by default, and one of these operations writes `last`. */
const MAX_KEYS = 127;
const WATCH_AGAIN_MS = 300;
const CHANGES_MS = 5_000;

const rules: Rules<EtcdOptions> = {
  endpoints: may.needed({
    wanted: 'a list of http: or https: URLs, such as "http://127.0.0.1:2379"',
    accepts: (value) => Array.isArray(value) && value.length > 0 && value.every(isHttpUrl),
  }),
  prefix: may.text,
  tls: may.fields,
};

/**
 * Runs `join()` on an etcd cluster.
 *
 * @example
 * const member = await join({ engine: etcd({ endpoints: ["http://10.0.0.1:2379", "http://10.0.0.2:2379"] }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid
 */
export function etcd(options: EtcdOptions): ExternalEngine {
  return externalEngine(
    "etcd",
    options,
    rules,
    () => new EtcdStore(new EtcdHttp(options), options.prefix ?? "coterie/"),
  );
}

class EtcdStore implements Store {
  readonly name = "etcd";
  readonly maxKeys = MAX_KEYS;
  readonly #http: EtcdHttp;
  readonly #prefix: string;
  readonly #last: string;
  readonly #hints = new Hints();
  readonly onHint = this.#hints.on;
  /** The lease for each session that belongs to this process. */
  readonly #leases = new Map<number, string>();
  #stopWatching: () => void = () => {};
  #again: ReturnType<typeof setTimeout> | null = null;

  constructor(http: EtcdHttp, prefix: string) {
    this.#http = http;
    this.#prefix = prefix;
    this.#last = base64(`${prefix}last`);
    this.#watch();
  }

  async get(key: string): Promise<StoreEntry | null> {
    const { kvs = [] } = (await this.#http.call("/v3/kv/range", { key: this.#key(key) })) as RangeAnswer;
    return kvs[0] === undefined ? null : this.#entry(kvs[0]);
  }

  async range({ from, to, limit }: RangeRequest) {
    const asked = { key: this.#key(from), range_end: this.#key(to), limit };
    const { header, kvs = [], more = false } = (await this.#http.call("/v3/kv/range", asked)) as RangeAnswer;
    return { revision: Number(header?.revision), entries: kvs.map((pair) => this.#entry(pair)), isMore: more };
  }

  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<number | null> {
    const steps = writes.map(({ key, value }) =>
      value === null
        ? { request_delete_range: { key: this.#key(key) } }
        : { request_put: { key: this.#key(key), value: base64(value) } },
    );
    const answer = (await this.#http.call("/v3/kv/txn", {
      compare: checks.map(({ key, revision }) => ({
        target: "MOD",
        result: "EQUAL",
        key: this.#key(key),
        mod_revision: String(revision),
      })),
      success: writes.length === 0 ? [] : [...steps, { request_put: { key: this.#last } }],
    })) as Header & { readonly succeeded?: boolean };
    return answer.succeeded === true ? Number(answer.header?.revision) : null;
  }

  async changes(prefix: string, after: number) {
    const { header, kvs = [] } = (await this.#http.call("/v3/kv/range", { key: this.#last })) as RangeAnswer;
    const last = Number(kvs[0]?.mod_revision ?? 0);
    const revision = Number(header?.revision); // No key with the prefix has changed between `last` and this revision.
    if (last <= after) return { revision, changes: [] };
    const changes = await this.#between(after, last);
    return changes && { revision, changes: changes.filter(({ key }) => key.startsWith(prefix)) };
  }

  async revision(): Promise<number> {
    return Number(((await this.#http.call("/v3/kv/range", { key: this.#last })) as RangeAnswer).header?.revision);
  }

  async openSession(ttlMs: number): Promise<number> {
    const { ID } = (await this.#http.call("/v3/lease/grant", { TTL: Math.ceil(ttlMs / 1_000) })) as { ID?: string };
    const key = base64(`${this.#prefix}number`);
    const session = Number(((await this.#http.call("/v3/kv/put", { key })) as Header).header?.revision);
    await this.#http.call("/v3/kv/put", { key: this.#key(sessionKey(session)), lease: ID });
    this.#leases.set(session, String(ID));
    return session;
  }

  async keepAlive(session: number): Promise<boolean> {
    const ID = this.#leases.get(session);
    if (ID === undefined) return false;
    const { result } = (await this.#http.call("/v3/lease/keepalive", { ID })) as { result?: { TTL?: string } };
    return Number(result?.TTL ?? 0) > 0 && (await this.living([session])).has(session);
  }

  async endSession(session: number): Promise<void> {
    const ID = this.#leases.get(session);
    this.#leases.delete(session);
    if (ID !== undefined) await this.#http.call("/v3/lease/revoke", { ID });
  }

  async living(sessions: readonly number[]): Promise<ReadonlySet<number>> {
    const found = await Promise.all(sessions.map((session) => this.get(sessionKey(session))));
    return new Set(sessions.filter((_session, at) => found[at] !== null));
  }

  close(): Promise<void> {
    if (this.#again !== null) clearTimeout(this.#again);
    this.#stopWatching();
    this.#http.close();
    return Promise.resolve();
  }

  /** Returns all changes after `after`, up to and including the one at `last`, or null if etcd has compacted them. */
  #between(after: number, last: number): Promise<StoreChange[] | null> {
    return new Promise((resolve, reject) => {
      const changes: StoreChange[] = [];
      const timer = setTimeout(() => fail(new Error(`no changes within ${CHANGES_MS} ms`)), CHANGES_MS);
      const done = (found: StoreChange[] | null): void => {
        clearTimeout(timer);
        stop();
        resolve(found);
      };
      const fail = (error: Error): void => {
        clearTimeout(timer);
        stop();
        reject(new StoreError(`etcd: ${error.message}`, false, { cause: error }));
      };
      const hear = (line: Record<string, unknown>): void => {
        const { canceled, compact_revision, events = [] } = (line.result ?? {}) as WatchAnswer;
        if (compact_revision !== undefined) return done(null);
        if (canceled === true || line.error !== undefined) return fail(new Error("the watch was ended"));
        for (const { type, kv } of events) {
          const revision = Number(kv.mod_revision);
          if (revision > last) return done(changes);
          if (kv.key !== this.#last) changes.push(this.#change(kv, type === "DELETE"));
        }
        if (events.some(({ kv }) => kv.key === this.#last && Number(kv.mod_revision) === last)) done(changes);
      };
      const stop = this.#http.stream("/v3/watch", this.#watched(after + 1), hear, fail);
    });
  }

  /** Sends a hint after every change, until the store is closed. */
  #watch(): void {
    this.#stopWatching = this.#http.stream("/v3/watch", this.#watched(), this.#hints.send, () => {
      this.#again = setTimeout(() => this.#watch(), WATCH_AGAIN_MS).unref();
    });
  }

  #watched(from?: number): object {
    const range = { key: base64(this.#prefix), range_end: base64(behind(this.#prefix)) };
    return { create_request: from === undefined ? range : { ...range, start_revision: String(from) } };
  }

  #key(key: string): string {
    return base64(this.#prefix + key);
  }

  #entry({ key, value = "", mod_revision }: Pair): StoreEntry {
    return { key: text(key).slice(this.#prefix.length), value: text(value), revision: Number(mod_revision) };
  }

  #change(pair: Pair, isDeleted: boolean): StoreChange {
    const { key, value, revision } = this.#entry(pair);
    return { key, value: isDeleted ? null : value, revision };
  }
}

/** Whether the value is an HTTP URL. `localhost:2379` is also a URL, with the protocol `localhost:`. */
const isHttpUrl = (value: unknown): boolean =>
  typeof value === "string" && URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol);
const sessionKey = (session: number): string => `s/${session}`;
const base64 = (plain: string): string => Buffer.from(plain, "utf8").toString("base64");
const text = (encoded: string): string => Buffer.from(encoded, "base64").toString("utf8");
