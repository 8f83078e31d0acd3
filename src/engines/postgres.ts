/**
 * The API of `join()` on PostgreSQL.
 *
 * The first process creates the tables in a separate schema. One row counts changes, and each change locks this row
 * until it commits. Revisions therefore become visible in order, which a sequence would not guarantee. Sessions expire
 * according to the server's clock: the process that finds an expired session deletes its row, and a deleted session
 * never comes back.
 *
 * @module coterie/engines/postgres
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

/** Options for the `postgres` engine. */
export interface PostgresOptions {
  /** The database URL, such as `postgres://user:password@10.0.0.1:5432/app`. */
  readonly url: string;
  /**
   * The schema for its tables. The name consists of lowercase letters, digits and `_`. All processes that coordinate
   * with each other must use the same schema. Default: `coterie`.
   */
  readonly schema?: string | undefined;
  /** TLS settings, passed to `pg` as the `ssl` option. */
  readonly tls?: object | undefined;
}

/** The part of `pg` that is used here. */
interface Library {
  readonly default: { readonly Pool: new (config: object) => Pool; readonly Client: new (config: object) => Client };
}
interface Queries {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
  on(event: "error", listener: (error: Error) => void): unknown;
  end(): Promise<void>;
}
type Pool = Queries;
interface Client extends Queries {
  connect(): Promise<void>;
  on(event: "error" | "end" | "notification", listener: (error: Error) => void): unknown;
}

const CONNECTIONS = 4;
const LISTEN_AGAIN_MS = 500;
/** The time limits for connecting and for a single query. After a timeout, the connection is discarded. */
const CONNECT_MS = 5_000;
const QUERY_MS = 5_000;
const MAX_KEYS = 128;

const rules: Rules<PostgresOptions> = {
  url: may.needed(may.text),
  schema: {
    wanted: "a name of lowercase letters, digits and _",
    accepts: (value) => typeof value === "string" && /^[a-z_][a-z0-9_]{0,40}$/.test(value),
  },
  tls: may.fields,
};

/**
 * Runs `join()` on a PostgreSQL database.
 *
 * @example
 * const member = await join({ engine: postgres({ url: "postgres://app@10.0.0.1:5432/app" }) });
 * await using lock = await member.mutex("invoice-42").acquire({ timeoutMs: 5_000 });
 * @throws UsageError if an option is invalid; on joining, `no-library` without the package `pg`
 */
export function postgres(options: PostgresOptions): ExternalEngine {
  return externalEngine("postgres", options, rules, openPostgres);
}

async function openPostgres({ url, schema = "coterie", tls }: PostgresOptions): Promise<Store> {
  const { default: pg } = await clientLibrary<Library>("pg", "postgres");
  const config = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    ...(tls === undefined ? {} : { ssl: tls }),
  };
  const pool = new pg.Pool({ ...config, max: CONNECTIONS, allowExitOnIdle: true });
  pool.on("error", () => {}); // The next call reconnects.
  return new PostgresStore(pool, new Listening(() => new pg.Client(config), schema), schema);
}

class PostgresStore implements Store {
  readonly name = "postgres";
  readonly maxKeys = MAX_KEYS;
  readonly #pool: Pool;
  readonly #listening: Listening;
  readonly #schema: string;
  readonly onHint: Store["onHint"];
  #made: Promise<unknown> | null = null;

  constructor(pool: Pool, listening: Listening, schema: string) {
    this.#pool = pool;
    this.#listening = listening;
    this.onHint = listening.hints.on;
    this.#schema = schema;
  }

  async get(key: string): Promise<StoreEntry | null> {
    const [row] = await this.#rows("select key, value, revision from SCHEMA.entries where key = $1", [key], false);
    return row === undefined ? null : entryOf(row);
  }

  async range({ from, to, limit }: RangeRequest) {
    const text = `select (select revision from SCHEMA.head) as at, e.key, e.value, e.revision
      from (select 1) as one left join lateral
        (select * from SCHEMA.entries where key >= $1 and key < $2 order by key limit $3) as e on true order by e.key`;
    const rows = await this.#rows(text, [from, to, limit + 1], false);
    const entries = rows.flatMap((row) => (row.key === null ? [] : [entryOf(row)]));
    return { revision: Number(rows[0]?.at), entries: entries.slice(0, limit), isMore: entries.length > limit };
  }

  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<number | null> {
    const values = [JSON.stringify(checks), JSON.stringify(writes), KEPT_CHANGES, KEPT_LENGTH];
    return this.#number("select SCHEMA.commit($1::jsonb, $2::jsonb, $3, $4) as answer", values, writes.length > 0);
  }

  async changes(prefix: string, after: number) {
    const text = `select h.revision as at, h.forgotten, c.revision, c.key, c.value from SCHEMA.head as h
      left join SCHEMA.changes as c on c.revision > $2 and starts_with(c.key, $1) order by c.revision, c.key`;
    const rows = await this.#rows(text, [prefix, after], false);
    if (after < Number(rows[0]?.forgotten)) return null;
    const changes = rows.flatMap((row) => (row.key === null ? [] : [changeOf(row)]));
    return { revision: Number(rows[0]?.at), changes };
  }

  async revision(): Promise<number> {
    return (await this.#number("select revision as answer from SCHEMA.head", [], false)) as number;
  }

  async openSession(ttlMs: number): Promise<number> {
    return (await this.#number("select SCHEMA.open_session($1) as answer", [ttlMs], true)) as number;
  }

  async keepAlive(session: number): Promise<boolean> {
    const text = `update SCHEMA.sessions set expires = clock_timestamp() + ttl
      where id = $1 and expires > clock_timestamp() returning id`;
    return (await this.#rows(text, [session], true)).length > 0;
  }

  async endSession(session: number): Promise<void> {
    await this.#rows("select SCHEMA.end_session($1)", [session], true);
  }

  async living(sessions: readonly number[]): Promise<ReadonlySet<number>> {
    const rows = await this.#rows("select * from SCHEMA.living($1) as id", [sessions], false);
    return new Set(rows.map(({ id }) => Number(id)));
  }

  async close(): Promise<void> {
    await Promise.all([this.#listening.close(), this.#pool.end()]);
  }

  async #number(text: string, values: unknown[], changes: boolean): Promise<number | null> {
    const [row] = await this.#rows(text, values, changes);
    return row?.answer === null || row === undefined ? null : Number(row.answer);
  }

  async #rows(text: string, values: unknown[], changes: boolean): Promise<Record<string, unknown>[]> {
    await this.#make();
    try {
      return (await this.#pool.query(text.replaceAll("SCHEMA", `"${this.#schema}"`), values)).rows;
    } catch (error) {
      throw failure(error as Error, changes);
    }
  }

  /** Creates the tables once. Tries again after a failure. */
  async #make(): Promise<void> {
    this.#made ??= this.#pool.query(schemaText(this.#schema));
    try {
      await this.#made;
    } catch (error) {
      this.#made = null;
      throw failure(error as Error, false);
    }
  }
}

/** Receives notifications of changes on a separate connection, which reconnects when it is lost. */
class Listening {
  readonly hints = new Hints();
  readonly #connect: () => Client;
  readonly #schema: string;
  #client: Client | null = null;
  #again: ReturnType<typeof setTimeout> | null = null;
  #isClosed = false;

  constructor(connect: () => Client, schema: string) {
    this.#connect = connect;
    this.#schema = schema;
    this.#open();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#again !== null) clearTimeout(this.#again);
    await this.#client?.end().catch(() => {});
  }

  #open(): void {
    const client = this.#connect();
    this.#client = client;
    client.on("notification", this.hints.send);
    client.on("error", () => {}); // An "end" event follows.
    client.on("end", () => this.#later());
    client
      .connect()
      .then(() => client.query(`listen "${this.#schema}"`))
      .then(this.hints.send) // Changes made before `listen` did not send a notification.
      .catch(() => client.end().catch(() => {}));
  }

  #later(): void {
    if (this.#isClosed) return;
    if (this.#again !== null) clearTimeout(this.#again);
    this.#again = setTimeout(() => this.#open(), LISTEN_AGAIN_MS).unref();
  }
}

const entryOf = ({ key, value, revision }: Record<string, unknown>): StoreEntry => ({
  key: String(key),
  value: String(value),
  revision: Number(revision),
});

const changeOf = ({ key, value, revision }: Record<string, unknown>): StoreChange => ({
  key: String(key),
  value: typeof value === "string" ? value : null,
  revision: Number(revision),
});

/**
 * Converts an error. A SQLSTATE means that the server refused the query and changed nothing, unless the server is
 * shutting down or the connection failed.
 */
function failure(error: Error & { code?: unknown }, changes: boolean): StoreError {
  const isRefused = typeof error.code === "string" && /^(?!57P|08)[0-9A-Z]{5}$/.test(error.code);
  const isUnreached = error.code === "ECONNREFUSED";
  return new StoreError(`postgres: ${error.message}`, changes && !isRefused && !isUnreached, { cause: error });
}

/**
 * Creates any tables and functions that do not exist. Several processes may do this at the same time, so they are
 * serialized by a transaction-level advisory lock. Each query string is one transaction.
 */
const schemaText = (schema: string): string => `
select pg_advisory_xact_lock(hashtext('coterie ${schema}'));
create schema if not exists "${schema}";
create table if not exists "${schema}".head (one boolean primary key default true check (one), revision bigint not null, forgotten bigint not null, length bigint not null default 0);
insert into "${schema}".head values (true, 0, 0) on conflict do nothing;
create table if not exists "${schema}".entries (key text collate "C" primary key, value text not null, revision bigint not null);
create table if not exists "${schema}".changes (revision bigint, key text collate "C", value text, primary key (revision, key));
create table if not exists "${schema}".sessions (id bigint primary key, ttl interval not null, expires timestamptz not null);

${commitText(schema)}

create or replace function "${schema}".open_session(ttl_ms double precision) returns bigint language plpgsql as $body$
declare
  at bigint;
  id bigint;
  ttl interval := ttl_ms * interval '1 millisecond';
begin
  update "${schema}".head set revision = revision + 1 returning revision into at;
  id := floor(extract(epoch from clock_timestamp()) * 1000) * 1000 + at % 1000; -- A session that was lost in a restore has a different number.
  insert into "${schema}".sessions values (id, ttl, clock_timestamp() + ttl);
  return id;
end $body$;

create or replace function "${schema}".end_session(session bigint) returns void language sql as $body$
  delete from "${schema}".sessions where id = session;
  select pg_notify('${schema}', '');
$body$;

create or replace function "${schema}".living(asked bigint[]) returns setof bigint language plpgsql as $body$
begin
  delete from "${schema}".sessions where id = any(asked) and expires <= clock_timestamp();
  return query select id from "${schema}".sessions where id = any(asked);
end $body$;
`;

/**
 * Returns the SQL for the function that commits changes. If too many changes are retained, it drops the oldest ones
 * first.
 */
const commitText = (schema: string): string => `
create or replace function "${schema}".commit(checks jsonb, writes jsonb, kept bigint, kept_length bigint) returns bigint language plpgsql as $body$
declare
  at bigint;
  known bigint;
  total bigint;
  gone bigint;
  oldest bigint;
begin
  select revision, forgotten, length into at, known, total from "${schema}".head for update;
  perform 1 from jsonb_to_recordset(checks) as c(key text, revision bigint)
    where coalesce((select e.revision from "${schema}".entries as e where e.key = c.key), 0) <> c.revision;
  if found then return null; end if;
  if jsonb_array_length(writes) = 0 then return at; end if;
  at := at + 1;
  insert into "${schema}".entries select w.key, w.value, at from jsonb_to_recordset(writes) as w(key text, value text)
    where w.value is not null on conflict (key) do update set value = excluded.value, revision = excluded.revision;
  delete from "${schema}".entries as e using jsonb_to_recordset(writes) as w(key text, value text)
    where w.value is null and e.key = w.key;
  insert into "${schema}".changes select at, w.key, w.value from jsonb_to_recordset(writes) as w(key text, value text)
    where starts_with(w.key, 'm/');
  select total + coalesce(sum(octet_length(c.key) + coalesce(octet_length(c.value), 0)), 0) into total
    from "${schema}".changes as c where c.revision = at;
  known := greatest(known, at - kept);
  loop
    select min(c.revision) into oldest from "${schema}".changes as c;
    exit when oldest is null or oldest = at or (oldest > known and total <= kept_length);
    with deleted as (delete from "${schema}".changes as c where c.revision = oldest returning c.key, c.value)
      select sum(octet_length(d.key) + coalesce(octet_length(d.value), 0)) into gone from deleted as d;
    total := total - gone;
    known := greatest(known, oldest);
  end loop;
  update "${schema}".head set revision = at, forgotten = known, length = total;
  perform pg_notify('${schema}', '');
  return at;
end $body$;`;
