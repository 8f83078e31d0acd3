/**
 * State that members share by name, in addition to locks, elections and channels: maps, counters, semaphores,
 * read-write locks, barriers, queues and the caller's own state machines. All of it is stored in a single replicated
 * log, with a copy at every member. For the guarantees, see docs/guide/map.md.
 */
import type { NodeId } from "../../../core/protocol.ts";
import type { AcquireOptions, Grant, Tenure } from "../tenure-api.ts";

/** Options for every shared-state call. */
export interface CallOptions {
  /** The maximum duration of the whole call, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it ends the call. The operation may still take effect. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A map that is the same at every member. Values are JSON data or bytes (`Uint8Array`). Values from other members are
 * not checked against `T`.
 *
 * Each call can throw `CoordinationError` `request-timeout`, `request-aborted`, `overloaded`, `outcome-unknown`,
 * `member-left` or `member-failed`. The error's `phase` is `never-sent` if the operation has no effect, and `uncertain`
 * if it may have taken effect. Invalid arguments throw `UsageError`, such as `too-large`.
 */
export interface SharedMap<T = unknown> {
  /** The name given to `map()`. */
  readonly name: string;
  /**
   * @returns the key's value, or undefined if it has none. The read is linearizable: it sees every write that was
   *   acknowledged before it
   */
  get(key: string, options?: CallOptions): Promise<T | undefined>;
  /** @returns the key's value with the revision at which it was put, or undefined if the key has no value */
  entry(key: string, options?: CallOptions): Promise<Entry<T> | undefined>;
  /** @returns the revision of this write, which is higher than every earlier revision of any key and map */
  put(key: string, value: T, options?: PutOptions): Promise<number>;
  /**
   * Puts the value if the key was last put at revision `ifRevision`. If `ifRevision` is 0, puts the value only if the
   * key has none.
   *
   * @returns the revision of this write, or null if the key has a different revision
   * @example
   * const entry = await stock.entry("apples");
   * const revision = await stock.compareAndSet("apples", entry?.revision ?? 0, 7);
   * if (revision === null) console.log("another member was faster");
   */
  compareAndSet(key: string, ifRevision: number, value: T, options?: PutOptions): Promise<number | null>;
  /**
   * Reads the value, calls `change`, and writes its result. If the key has changed in the meantime, tries again. To
   * keep a leased entry leased, pass `leased`; otherwise, it becomes permanent.
   *
   * @returns the value that was written
   * @example
   * const left = await stock.update("apples", (apples = 0) => apples - 1);
   * @throws the error of `change`; for other errors, see `SharedMap`
   */
  update(key: string, change: (value: T | undefined) => T, options?: PutOptions): Promise<T>;
  /**
   * Deletes the key. With `ifRevision`, deletes it only if it was last put at that revision.
   *
   * @returns whether an entry was deleted
   */
  delete(key: string, options?: CallOptions & { readonly ifRevision?: number | undefined }): Promise<boolean>;
  /**
   * @returns entries in key order, all as of the same revision
   * @example
   * const { entries, revision } = await stock.range({ prefix: "fruit/", limit: 100 });
   * for (const { key, value } of entries) console.log(key, value);
   */
  range(options?: RangeOptions): Promise<Range<T>>;
  /**
   * Iterates over every change, in order, without gaps or duplicates. It starts after the revision `after`, or with the
   * next change. A slow reader misses nothing as long as the members retain the changes. End the watch with `break`,
   * `return()` or its signal. Until then, each change costs slightly more, even if the program is not reading. The
   * watch ends when its member leaves or its client closes.
   *
   * @example
   * const { entries, revision } = await stock.range();
   * for await (const change of stock.watch({ after: revision }))
   *   if (change.type === "put") console.log(change.key, change.value);
   * @throws CoordinationError `compacted` if the members no longer retain changes that this watch has not returned. In
   *   that case, read the map, and watch from the revision of that read. `member-failed`, `member-removed` or
   *   `client-refused` after a failure
   */
  watch(options?: WatchOptions): AsyncIterableIterator<Change<T>>;
}

/** Options for `SharedMap.put()`. */
export interface PutOptions extends CallOptions {
  /**
   * Whether to delete the entry once this member has left, has crashed or has been disconnected for too long. Default:
   * false.
   */
  readonly leased?: boolean | undefined;
}

/** An entry in a map. */
export interface Entry<T> {
  /** The entry's key. */
  readonly key: string;
  /** The value that was last put. */
  readonly value: T;
  /** The revision at which the value was put. Pass it to `compareAndSet()`, or to `delete()` as `ifRevision`. */
  readonly revision: number;
}

/** Options for `SharedMap.range()`. */
export interface RangeOptions extends CallOptions {
  /** The first key of the range, inclusive. */
  readonly from?: string | undefined;
  /** The end of the range, exclusive. */
  readonly to?: string | undefined;
  /** A prefix that the keys must have, in addition to being between `from` and `to`. */
  readonly prefix?: string | undefined;
  /** The maximum number of entries to return, at most 1,000. Default: 1,000. */
  readonly limit?: number | undefined;
}

/** A range of a map's entries. */
export interface Range<T> {
  /** The entries in ascending key order. */
  readonly entries: readonly Entry<T>[];
  /** The revision of this read. `watch({ after: revision })` continues from there. */
  readonly revision: number;
  /** Whether the range has more entries after the last key. */
  readonly more: boolean;
}

/** Options for `SharedMap.watch()`. */
export interface WatchOptions {
  /** The watch reports changes after this revision. Default: the current revision. */
  readonly after?: number | undefined;
  /** Reports only changes to this key. Default: changes to every key. */
  readonly key?: string | undefined;
  /** Reports only changes to keys that begin with this text. */
  readonly prefix?: string | undefined;
  /** Aborting it ends the watch. */
  readonly signal?: AbortSignal | undefined;
}

/** A change to a map, with the revision of the write. */
export type Change<T> =
  /** The key now has this value. */
  | { readonly type: "put"; readonly key: string; readonly value: T; readonly revision: number }
  /** The key was deleted, by a call or because its lease ended. */
  | { readonly type: "delete"; readonly key: string; readonly revision: number };

/** Reads and writes of several keys and maps. The writes take effect atomically, or not at all. */
export interface Transaction {
  /** @returns the key's value, including any write made in this transaction, or undefined if it has none */
  get<T>(map: SharedMap<T>, key: string): Promise<T | undefined>;
  /**
   * Puts the value when the transaction commits. To keep a leased entry leased, pass `leased`; otherwise, it becomes
   * permanent.
   */
  put<T>(map: SharedMap<T>, key: string, value: T, options?: Pick<PutOptions, "leased">): void;
  /** Deletes the key when the transaction commits. Deleting an absent key has no effect. */
  delete<T>(map: SharedMap<T>, key: string): void;
}

/**
 * An integer that is the same at every member, and 0 before its first use. It is always a safe integer: an addition
 * beyond that range throws `overflow`.
 */
export interface SharedCounter {
  /** The name given to `counter()`. */
  readonly name: string;
  /** @returns the value. The read is linearizable: it includes every change that was acknowledged before it */
  get(options?: CallOptions): Promise<number>;
  /**
   * Adds a number.
   *
   * @param by default 1. Pass a negative number to subtract
   * @returns the new value
   */
  add(by?: number, options?: CallOptions): Promise<number>;
  /** Replaces the value with a safe integer. */
  set(value: number, options?: CallOptions): Promise<void>;
}

/** Options for `Member.semaphore()`. */
export interface SemaphoreOptions {
  /** The number of permits. Must be the same at every member. */
  readonly permits: number;
}

/** Options for `Semaphore.acquire()`. */
export interface PermitOptions extends AcquireOptions {
  /** The number of permits to acquire. Default: 1. */
  readonly permits?: number | undefined;
}

/** A number of permits shared by all members. */
export interface Semaphore {
  /** The name given to `semaphore()`. */
  readonly name: string;
  /** The total number of permits. */
  readonly permits: number;
  /**
   * Waits for the permits. Callers at all members are served in FIFO order. Throws the same errors as
   * `Mutex.acquire()`.
   *
   * @example
   * await using permits = await uploads.acquire({ permits: 2, timeoutMs: 5_000 });
   */
  acquire(options?: PermitOptions): Promise<Grant>;
  /**
   * Acquires permits, calls `work`, and releases the permits when `work` has finished.
   *
   * @returns the result of `work`
   * @throws the same errors as `Mutex.use()`
   */
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: PermitOptions): Promise<T>;
}

/** A lock for many readers or one writer. Readers do not overtake a waiting writer. */
export interface ReadWriteLock {
  /** The name given to `readWriteLock()`. */
  readonly name: string;
  /** Waits for the lock as a reader, together with other readers. Throws the same errors as `Mutex.acquire()`. */
  read(options?: AcquireOptions): Promise<Grant>;
  /** Waits for the lock as a writer, which is then the only holder. Throws the same errors as `Mutex.acquire()`. */
  write(options?: AcquireOptions): Promise<Grant>;
}

/** Options for `Member.barrier()`. */
export interface BarrierOptions {
  /** The number of callers that must arrive. Must be the same at every member. */
  readonly parties: number;
}

/** Holds callers back until `parties` of them have arrived. Then all of them pass, and the next round begins. */
export interface Barrier {
  /** The name given to `barrier()`. */
  readonly name: string;
  /** The number of callers that must arrive. */
  readonly parties: number;
  /**
   * Waits until all `parties` have arrived. If the call times out or its signal is aborted, the log decides whether all
   * had already arrived. If so, the call returns normally. An error with the phase `never-acquired` means that the
   * arrival does not count. `uncertain` means that the log did not answer within 0.25 s, or that the member has left;
   * the arrival may count, so other callers may pass because of it.
   *
   * @returns a number that increases each time the callers pass, and that is the same for all callers that pass
   *   together. If the member fell so far behind that it missed the event, or if the client moved to a different
   *   member, the result is a higher number that no other caller gets
   * @throws CoordinationError `outcome-unknown` if the session has ended and it is unknown whether all had arrived
   *   before that
   */
  arrive(options?: AcquireOptions): Promise<number>;
}

/** Delivers each item to one taker, in FIFO order. If a taker is lost, its item is the next one to be taken. */
export interface SharedQueue<T = unknown> {
  /** The name given to `queue()`. */
  readonly name: string;
  /**
   * Adds an item.
   *
   * @returns the item's number, which increases with each item
   */
  add(item: T, options?: CallOptions): Promise<number>;
  /**
   * Waits for an item. Takers are served in FIFO order.
   *
   * @throws the same errors as `Mutex.acquire()`
   */
  take(options?: AcquireOptions): Promise<QueueItem<T>>;
  /** @returns the number of items waiting to be taken */
  size(options?: CallOptions): Promise<number>;
}

/** A taken item. It belongs to this member until the member removes it, gives it back, or is lost. */
export interface QueueItem<T> extends Tenure {
  /** The value that was added. */
  readonly item: T;
  /**
   * Removes the item after it has been processed. If a call times out, you can call this method again; it waits for the
   * same result.
   * @throws CoordinationError `grant-lost` if another taker may already have the item
   */
  done(options?: CallOptions): Promise<void>;
  /** Gives the item back, so that the next taker gets it. */
  giveBack(): Promise<void>;
}

/**
 * The caller's own state machine. Every member applies the same commands in the same order. The result of `apply` must
 * depend only on its arguments, not on a clock, randomness or outside state. State and commands are plain data.
 */
export interface StateMachine<S, C, R> {
  /** @returns the state before the first command */
  init(): S;
  /**
   * Computes the next state and the result for the caller, without changing `state`. If it throws, the state remains
   * the same, and the caller gets the error.
   */
  apply(state: S, command: C): readonly [state: S, result: R];
}

/** A state machine that the members replicate. */
export interface Replicated<S, C, R> {
  /** The name given to `replicated()`. */
  readonly name: string;
  /**
   * Resolves with the result of `apply` once a majority has the command and this member has applied it.
   *
   * @throws UsageError `bad-value`, `too-large`; CoordinationError `machine-failed` if `apply` threw; and the errors of
   *   `SharedMap` calls
   */
  execute(command: C, options?: CallOptions): Promise<R>;
  /** @returns the state. The read is linearizable: it includes all commands that were acknowledged before it */
  read(options?: CallOptions): Promise<S>;
}

/** The status of shared state at a member, as part of `MemberStatus`. */
export interface StateStatus {
  /** The leader of the log, as far as this member knows. */
  readonly leader: NodeId | null;
  /** The current term of the log, as far as this member knows. */
  readonly term: number;
  /** The revision of the last change that this member knows of. Null until it has used the service. */
  readonly revision: number | null;
  /** This member's session. Null if it has none. */
  readonly session: number | null;
  /** The number of this member's calls that are waiting for an answer. */
  readonly waiting: number;
}

/** The part of a member's API that uses the replicated service. For the guarantees, see docs/guide/map.md. */
export interface StateApi {
  /**
   * Opens the map with the given name.
   *
   * @example
   * const stock = member.map<number>("stock");
   * const revision = await stock.put("apples", 3);
   * for await (const change of stock.watch({ after: revision })) console.log(change.key);
   * @throws UsageError if the name is invalid, or if the member has no `dataDir`. After the member has left or failed,
   *   the map's calls reject
   */
  map<T = unknown>(name: string): SharedMap<T>;
  /**
   * Opens the counter with the given name.
   *
   * @example
   * const visits = await member.counter("visits").add();
   * @throws the same errors as `map()`
   */
  counter(name: string): SharedCounter;
  /**
   * Calls `work`, and commits its writes if nothing that it has read has changed in the meantime. Otherwise, calls it
   * again. All writes take effect atomically, or not at all. If `work` throws, its error is rethrown if its reads were
   * consistent; otherwise, `work` is called again. After a timeout, `work` may still run, but it writes nothing.
   *
   * @returns the result of `work`
   * @example
   * await member.transaction(async (transaction) => {
   *   const balance = (await transaction.get(accounts, "alice")) ?? 0;
   *   if (balance < 5) throw new Error("not enough money");
   *   transaction.put(accounts, "alice", balance - 5);
   *   transaction.put(accounts, "bob", ((await transaction.get(accounts, "bob")) ?? 0) + 5);
   * });
   * @throws the error that `work` throws; UsageError `transaction-over`, `too-large`; the errors of `SharedMap` calls
   */
  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options?: CallOptions): Promise<R>;
  /**
   * Opens the semaphore with the given name.
   *
   * @example
   * const uploads = member.semaphore("uploads", { permits: 4 });
   * await uploads.use(({ signal }) => upload(file, { signal }));
   * @throws the same errors as `map()`
   */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;
  /**
   * Opens the read-write lock with the given name.
   *
   * @example
   * await using reading = await member.readWriteLock("catalog").read({ timeoutMs: 5_000 });
   * @throws the same errors as `map()`
   */
  readWriteLock(name: string): ReadWriteLock;
  /**
   * Opens the barrier with the given name.
   *
   * @example
   * const start = member.barrier("start", { parties: 3 });
   * await start.arrive({ timeoutMs: 60_000 });
   * @throws the same errors as `map()`
   */
  barrier(name: string, options: BarrierOptions): Barrier;
  /**
   * Opens the queue with the given name.
   *
   * @example
   * const item = await member.queue<Order>("orders").take();
   * await pack(item.item, { token: item.token, signal: item.signal });
   * await item.done();
   * @throws the same errors as `map()`
   */
  queue<T = unknown>(name: string): SharedQueue<T>;
  /**
   * Opens the caller's own state machine with the given name. Define the same machine at every member before its first
   * use.
   *
   * @example
   * const balance = member.replicated("balance", { init: () => 0, apply: (state, by: number) => [state + by, state + by]
   * });
   * console.log(await balance.execute(5));
   * @throws the same errors as `map()`
   */
  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R>;
}
