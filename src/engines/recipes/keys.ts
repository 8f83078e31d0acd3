/**
 * Maps, counters and transactions on an engine. Each change is a compare-and-set on the values that were read, and each
 * value names its writer. If the answer to a change is lost, this process therefore either recognizes its own write,
 * repeats the change, or reports an unknown outcome. It never applies a change twice.
 */
import { unknownOutcome } from "../../cluster/services/state/refusals.ts";
import type {
  Answer,
  Change,
  Comparison,
  CounterOperation,
  KeyOperation,
  Result,
  Step,
  StepResult,
  Stored,
} from "../../protocols/service/coordination-service/operations.ts";
import { MAX_RANGE, refuse } from "../../protocols/service/coordination-service/operations.ts";
import {
  behind,
  byCodePoint,
  nextKey,
  type RangeRequest,
  refused,
  type Store,
  type StoreChange,
  type StoreEntry,
  StoreError,
  type Write,
} from "../store.ts";
import type { DeadKeys } from "./dead-keys.ts";
import { counterKey, isLeaseKey, keptText, keptValue, leaseKey, mapKey, mapPrefix } from "./keyspace.ts";
import type { Retrying } from "./pacing.ts";

export interface KeysOptions {
  readonly store: Store;
  readonly retrying: Retrying;
  readonly dead: DeadKeys;
  /** Returns a name for a single write, which has never been used before. */
  writer(): string;
}

/** The state of a key when it was read. */
interface Seen {
  /** The key's revision in the engine, or 0 if the key does not exist. */
  readonly revision: number;
  readonly writer: string | null;
  /** The entry. Null if the key does not exist or its session has ended. */
  readonly entry: Stored | null;
}

/** The writes required for an operation, and its result, given the values that were read. */
interface Plan {
  readonly writes: readonly Write[];
  readonly result: Result;
}

interface Work {
  readonly keys: readonly string[];
  plan(seen: ReadonlyMap<string, Seen>, writer: string): Plan;
}

/** A commit whose outcome is unknown. */
interface Sent {
  readonly seen: ReadonlyMap<string, Seen>;
  readonly result: Result;
}

/**
 * The maximum number of pages that a range reads in order to skip keys of ended sessions, and the maximum number of
 * times that it starts over because its map has changed.
 */
const MAX_PAGES = 10;
const MAX_TRIES = 5;

/** The first entries of a range in a map, as of a single revision. */
interface Page {
  readonly revision: number;
  readonly entries: readonly StoreEntry[];
  readonly seen: ReadonlyMap<string, Seen>;
  readonly isMore: boolean;
}

/** Reads and writes keys with the semantics of maps and counters. */
export class Keys {
  readonly #options: KeysOptions;

  constructor(options: KeysOptions) {
    this.#options = options;
  }

  /** @param session returns the session that leased keys belong to, or null once the caller is no longer waiting */
  async submit(
    operation: KeyOperation | CounterOperation,
    session: () => number | null,
  ): Promise<{ revision: number; result: Result }> {
    const writer = this.#options.writer();
    let sent: Sent | null = null;
    for (let tries = 0; ; tries++) {
      const by = session();
      if (by === null && sent !== null) throw unknownOutcome();
      if (by === null)
        return { revision: 0, result: refuse("session-expired", "the caller is no longer waiting for it") };
      const work = workOf(operation, by);
      this.#requireRoom(work.keys.length);
      const seen = await this.#seen(work.keys);
      if (seen !== null) {
        const done = sent === null ? null : whatCameOf(sent, seen, writer);
        if (done !== null) return done;
        const plan = work.plan(seen, writer);
        if (plan.result.type === "refused") return { revision: 0, result: plan.result };
        this.#options.dead.note(plan.writes);
        const revision = await this.#commit(seen, plan.writes);
        if (typeof revision === "number") return { revision, result: plan.result };
        if (revision === "uncertain" && plan.writes.length > 0) sent ??= { seen, result: plan.result };
      }
      await this.#options.retrying.pause(tries);
    }
  }

  async get(map: string, key: string): Promise<{ revision: number; answer: Answer & { type: "found" } }> {
    const place = mapKey(map, key);
    const entry = (await this.#see([place])).get(place)?.entry ?? null;
    return { revision: entry?.revision ?? 0, answer: { type: "found", entry } };
  }

  async count(name: string): Promise<{ revision: number; answer: Answer & { type: "counted" } }> {
    const key = counterKey(name);
    const value = Number((await this.#see([key])).get(key)?.entry?.value ?? 0);
    return { revision: await this.#options.store.revision(), answer: { type: "counted", value } };
  }

  /**
   * Returns permanent entries and entries of sessions that are alive. Keys of ended sessions are skipped and removed.
   */
  async range({ map, from, to, limit }: { map: string; from: string; to: string | null; limit: number }) {
    const prefix = mapPrefix(map);
    const last = to === null ? behind(prefix) : prefix + to;
    const wanted = Math.min(limit, MAX_RANGE);
    const { revision, entries, seen, isMore } = await this.#living(prefix, {
      from: prefix + from,
      to: last,
      limit: wanted,
    });
    void this.#options.dead.clear(entries.filter(({ key }) => seen.get(key)?.entry === null));
    const found = [...seen].flatMap(([key, { entry }]) =>
      entry === null ? [] : [{ key: key.slice(prefix.length), ...entry }],
    );
    const answer: Answer & { type: "entries" } = {
      type: "entries",
      entries: found.slice(0, wanted),
      isMore: isMore || found.length > wanted,
    };
    return { revision, answer };
  }

  /** @throws CoordinationError `compacted` */
  async changes(map: string, after: number) {
    const prefix = mapPrefix(map);
    const found = await this.#options.store.changes(prefix, after);
    if (found === null) throw refused("compacted", `changes after revision ${after} are no longer available`);
    // After a restore, the engine may not have reached this revision again.
    if (found.revision < after) throw refused("compacted", `revision ${after} is no longer available`);
    const changes = found.changes.map((change) => shownChange(map, prefix, change));
    const answer: Answer & { type: "changes" } = { type: "changes", changes, isMore: false };
    return { revision: found.revision, answer };
  }

  /**
   * Reads a range without the keys of ended sessions. Returns fewer than `limit` entries at the end of the range, if
   * the map keeps changing, or if too many keys must be skipped.
   */
  async #living(prefix: string, range: RangeRequest): Promise<Page> {
    for (let tries = 0; ; tries++) {
      const first = await this.#options.store.range(range);
      let page: Page | null = { ...first, seen: await this.#asSeen(first.entries) };
      const begun = page;
      for (let pages = 1; page !== null && pages < MAX_PAGES && isShort(page, range.limit); pages++)
        page = await this.#readOn(prefix, range, page, Math.min(range.limit * 2 ** pages, MAX_RANGE));
      if (page !== null || tries === MAX_TRIES) return page ?? begun;
    }
  }

  /** Reads the next page. Returns null if an earlier page has changed in the meantime. */
  async #readOn(prefix: string, { from, to }: RangeRequest, before: Page, limit: number): Promise<Page | null> {
    const { store } = this.#options;
    const { key: last } = before.entries.at(-1) as StoreEntry;
    const { revision, entries: more, isMore } = await store.range({ from: nextKey(last), to, limit });
    if (revision !== before.revision) {
      const since = await store.changes(prefix, before.revision);
      const isOfBefore = ({ key, value }: StoreChange): boolean =>
        byCodePoint(key, from) >= 0 &&
        byCodePoint(key, last) <= 0 &&
        (value !== null || (before.seen.get(key)?.entry ?? null) !== null);
      if (since === null || since.changes.some(isOfBefore)) return null;
    }
    const entries = [...before.entries, ...more];
    return { revision, entries, seen: await this.#asSeen(entries), isMore };
  }

  #requireRoom(keys: number): void {
    const { name, maxKeys } = this.#options.store;
    if (keys <= maxKeys) return;
    const text = `expected at most ${maxKeys} keys to be changed at once, got ${keys}: ${name} does not accept more`;
    throw refused("too-large", `${text}; a leased key counts twice, because the session's key also changes`);
  }

  async #seen(keys: readonly string[]): Promise<ReadonlyMap<string, Seen> | null> {
    try {
      return await this.#see(keys);
    } catch (error) {
      if (error instanceof StoreError) return null;
      throw error;
    }
  }

  async #commit(seen: ReadonlyMap<string, Seen>, writes: readonly Write[]): Promise<number | "failed" | "uncertain"> {
    const checks = [...seen].map(([key, { revision }]) => ({ key, revision }));
    try {
      return (await this.#options.store.commit(checks, writes)) ?? "failed";
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      return error.isUncertain ? "uncertain" : "failed";
    }
  }

  async #see(keys: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
    const entries = (await Promise.all(keys.map((key) => this.#options.store.get(key)))).filter(
      (entry) => entry !== null,
    );
    const seen = await this.#asSeen(entries.filter(({ key }) => !isLeaseKey(key)));
    // A lease key has no value, so only its revision matters.
    for (const { key, revision } of entries)
      if (isLeaseKey(key)) seen.set(key, { revision, writer: null, entry: null });
    return new Map(keys.map((key) => [key, seen.get(key) ?? { revision: 0, writer: null, entry: null }]));
  }

  async #asSeen(entries: readonly StoreEntry[]): Promise<Map<string, Seen>> {
    const kept = entries.map((entry) => ({ entry, kept: keptValue(entry) }));
    const sessions = [...new Set(kept.flatMap(({ kept: { session } }) => (session === 0 ? [] : [session])))];
    const living = sessions.length === 0 ? new Set<number>() : await this.#options.store.living(sessions);
    return new Map(
      kept.map(({ entry: { key, revision }, kept: { session, writer, text } }) => {
        const isThere = session === 0 || living.has(session);
        const entry = isThere ? { value: text, revision, session: session === 0 ? null : session } : null;
        return [key, { revision, writer, entry }];
      }),
    );
  }
}

/** Whether there are more entries although fewer live ones were read than requested. */
const isShort = ({ entries, seen, isMore }: Page, wanted: number): boolean =>
  isMore && entries.length > 0 && [...seen.values()].filter(({ entry }) => entry !== null).length < wanted;

/**
 * @returns the result of a commit, or null if nothing shows that it was applied
 * @throws CoordinationError `outcome-unknown` if other writes followed
 */
function whatCameOf({ seen: before, result }: Sent, seen: ReadonlyMap<string, Seen>, writer: string) {
  for (const each of seen.values()) if (each.writer === writer) return { revision: each.revision, result };
  for (const [key, { revision }] of seen) if (before.get(key)?.revision !== revision) throw unknownOutcome();
  return null;
}

/** Converts a change in the engine to a change in a map. */
export function shownChange(map: string, prefix: string, { key, value, revision }: StoreChange): Change {
  return {
    map,
    key: key.slice(prefix.length),
    revision,
    value: value === null ? null : keptValue({ key, value }).text,
  };
}

function workOf(operation: KeyOperation | CounterOperation, session: number): Work {
  if (operation.type === "add" || operation.type === "set") return counting(operation);
  if (operation.type === "transaction") {
    const { compare, success, failure } = operation;
    return stepping(compare, success, failure, session, (succeeded, results) => ({
      type: "transaction",
      succeeded,
      results,
    }));
  }
  return stepping([], [operation], [], session, (_succeeded, [only]) => only as Result);
}

function stepping(
  compare: readonly Comparison[],
  success: readonly Step[],
  failure: readonly Step[],
  session: number,
  resultOf: (succeeded: boolean, results: StepResult[]) => Result,
): Work {
  const places = [...compare, ...success, ...failure].map(({ map, key }) => mapKey(map, key));
  const leases = [...success, ...failure].flatMap((step) =>
    step.type === "put" && step.isLeased ? [leaseKey(mapKey(step.map, step.key))] : [],
  );
  return {
    keys: [...new Set([...places, ...leases])],
    plan(seen, writer) {
      const succeeded = compare.every((each) => holds(each, seen));
      const steps = succeeded ? success : failure;
      const results = steps.map((step): StepResult => {
        const entry = seen.get(mapKey(step.map, step.key))?.entry ?? null;
        return step.type === "get" ? { type: "found", entry } : { type: "stored", previous: entry };
      });
      const writes = steps.flatMap((step) => writesOf(step, seen, session, writer));
      return { writes, result: resultOf(succeeded, results) };
    },
  };
}

function holds(comparison: Comparison, seen: ReadonlyMap<string, Seen>): boolean {
  const entry = seen.get(mapKey(comparison.map, comparison.key))?.entry ?? null;
  return comparison.type === "revision"
    ? (entry?.revision ?? 0) === comparison.revision
    : entry?.value === comparison.value;
}

function writesOf(step: Step, seen: ReadonlyMap<string, Seen>, session: number, writer: string): Write[] {
  if (step.type === "get") return [];
  const key = mapKey(step.map, step.key);
  if (step.type === "delete") return (seen.get(key)?.revision ?? 0) === 0 ? [] : [{ key, value: null }];
  const { isLeased, value } = step;
  const put = { key, value: keptText({ session: isLeased ? session : 0, writer, text: value }) };
  return isLeased ? [put, { key: leaseKey(key), value: String(session) }] : [put];
}

function counting(operation: CounterOperation): Work {
  const key = counterKey(operation.name);
  return {
    keys: [key],
    plan(seen, writer) {
      const before = Number(seen.get(key)?.entry?.value ?? 0);
      const value = operation.type === "add" ? before + operation.by : operation.to;
      if (!Number.isSafeInteger(value))
        return { writes: [], result: refuse("overflow", `${before} + ${value - before} is not a safe integer`) };
      const write = { key, value: keptText({ session: 0, writer, text: String(value) }) };
      return { writes: [write], result: { type: "counted", value } };
    },
  };
}
