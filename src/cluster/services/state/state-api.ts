/**
 * State that members share by name in addition to locks, elections and channels: maps, counters, semaphores, read-write
 * locks, barriers, queues and the caller's own state machines. All of it is one replicated log with a copy at every member.
 * Guarantees: docs/guide/map.md.
 */
import type { NodeId } from "../../../core/protocol.ts";
import type { AcquireOptions, Grant, Tenure } from "../tenure-api.ts";

/** Options of every call of shared state. */
export interface CallOptions {
  /** How long the whole call may take at most. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it ends the call. The operation may still take effect. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A map by that name, the same at every member. Values are JSON data or bytes (`Uint8Array`). Values from other members are
 * not checked against `T`.
 *
 * Each call throws `CoordinationError` `request-timeout`, `request-aborted`, `overloaded`, `outcome-unknown`, `member-left`
 * or `member-failed`. Its `phase` is `never-sent` if nothing was done, and `uncertain` if it may have been. Invalid
 * arguments throw `UsageError`, such as `too-large`.
 */
export interface SharedMap<T = unknown> {
  readonly name: string;
  /** @returns the value of the key; undefined if there is none. Linearizable: it sees every write acknowledged before. */
  get(key: string, options?: CallOptions): Promise<T | undefined>;
  /** @returns the value of the key, with the revision at which it was put; undefined if there is none */
  entry(key: string, options?: CallOptions): Promise<Entry<T> | undefined>;
  /** @returns the revision of this write, which is higher than every earlier revision of any key and map */
  put(key: string, value: T, options?: PutOptions): Promise<number>;
  /**
   * Puts the value if the key was last put at `ifRevision`. With 0: if the key has no value.
   *
   * @returns the revision of this write, or null if the key has another revision.
   */
  compareAndSet(key: string, ifRevision: number, value: T, options?: PutOptions): Promise<number | null>;
  /**
   * Reads the value, calls `change`, and writes its result unless the key has changed meanwhile; then it tries again. Pass
   * `leased` to keep a leased entry leased; otherwise it becomes permanent.
   *
   * @returns the value that was written
   */
  update(key: string, change: (value: T | undefined) => T, options?: PutOptions): Promise<T>;
  /**
   * Deletes the key; with `ifRevision`, only if it was last put at that revision.
   *
   * @returns whether an entry was deleted
   */
  delete(key: string, options?: CallOptions & { readonly ifRevision?: number | undefined }): Promise<boolean>;
  /** @returns entries in the order of their keys, all as of one revision */
  range(options?: RangeOptions): Promise<Range<T>>;
  /**
   * Every change, in order, without gap or repetition: changes after the revision `after`, or from now on. A slow reader
   * misses nothing as long as the members retain the changes. End it by `break`, `return()` or its signal: until then, each
   * change costs a little more, even if the program does not read. It ends when its member leaves or its client closes.
   * @throws CoordinationError `compacted` if the members no longer retain changes that this watch has not returned: read
   *   the map, and watch from the revision of that read. `member-failed`, `member-removed` or `client-refused` after a
   *   failure.
   */
  watch(options?: WatchOptions): AsyncIterableIterator<Change<T>>;
}

/** Options of `SharedMap.put()`. */
export interface PutOptions extends CallOptions {
  /** The entry is deleted once this member has left, has crashed or has been cut off for too long. Default: false. */
  readonly leased?: boolean | undefined;
}

/** An entry of a map. */
export interface Entry<T> {
  readonly key: string;
  readonly value: T;
  readonly revision: number;
}

/** Options of `SharedMap.range()`. */
export interface RangeOptions extends CallOptions {
  /** The first key of the range, inclusive. */
  readonly from?: string | undefined;
  /** The end of the range, exclusive. */
  readonly to?: string | undefined;
  readonly prefix?: string | undefined;
  /** The maximum number of entries. Default, and at most: 1,000. */
  readonly limit?: number | undefined;
}

/** A range of a map. */
export interface Range<T> {
  readonly entries: readonly Entry<T>[];
  /** The revision at which these are the entries: `watch({ after: revision })` continues from there. */
  readonly revision: number;
  /** Whether there are more entries after the last key. */
  readonly more: boolean;
}

/** Options of `SharedMap.watch()`. */
export interface WatchOptions {
  /** Only changes after this revision. Default: from now on. */
  readonly after?: number | undefined;
  /** Only this key, or with `prefix`, keys that begin with it. */
  readonly key?: string | undefined;
  readonly prefix?: string | undefined;
  /** Aborting it ends the watch. */
  readonly signal?: AbortSignal | undefined;
}

/** A change of a map. */
export type Change<T> =
  | { readonly type: "put"; readonly key: string; readonly value: T; readonly revision: number }
  | { readonly type: "delete"; readonly key: string; readonly revision: number };

/** Reads and writes of several keys and maps that take effect at one moment, or not at all. */
export interface Transaction {
  get<T>(map: SharedMap<T>, key: string): Promise<T | undefined>;
  /** Pass `leased` to keep a leased entry leased; otherwise it becomes permanent. */
  put<T>(map: SharedMap<T>, key: string, value: T, options?: Pick<PutOptions, "leased">): void;
  delete<T>(map: SharedMap<T>, key: string): void;
}

/**
 * An integer by that name, the same at every member; 0 before its first use. Only safe integers: an addition beyond them
 * throws `overflow`.
 */
export interface SharedCounter {
  readonly name: string;
  get(options?: CallOptions): Promise<number>;
  /**
   * @param by default 1; a negative number counts down
   * @returns the new value
   */
  add(by?: number, options?: CallOptions): Promise<number>;
  set(value: number, options?: CallOptions): Promise<void>;
}

/** Options of `Member.semaphore()`. */
export interface SemaphoreOptions {
  /** The number of permits, the same at every member. */
  readonly permits: number;
}

/** Options of `Semaphore.acquire()`. */
export interface PermitOptions extends AcquireOptions {
  /** The number of permits to acquire. Default 1. */
  readonly permits?: number | undefined;
}

/** A number of permits that all members share. */
export interface Semaphore {
  readonly name: string;
  readonly permits: number;
  /** Waits for the permits. Callers of all members are served in FIFO order. Throws the same errors as `Mutex.acquire()`. */
  acquire(options?: PermitOptions): Promise<Grant>;
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: PermitOptions): Promise<T>;
}

/** Many readers or one writer. Readers do not overtake a writer that waits. */
export interface ReadWriteLock {
  readonly name: string;
  read(options?: AcquireOptions): Promise<Grant>;
  write(options?: AcquireOptions): Promise<Grant>;
}

/** Options of `Member.barrier()`. */
export interface BarrierOptions {
  /** How many callers must arrive, the same at every member. */
  readonly parties: number;
}

/** Holds callers back until `parties` of them have arrived; then all pass, and the next round begins. */
export interface Barrier {
  readonly name: string;
  readonly parties: number;
  /**
   * Waits until all have arrived. If the caller's time runs out or its signal is aborted, the log decides whether all had
   * passed before: if so, the call returns. An error with the phase `never-acquired` means that the arrival does not count.
   * `uncertain` means that the log did not answer within 0.25 s or the member has left: the arrival may count, and others
   * may pass because of it.
   *
   * @returns a number that grows each time all pass, the same for all callers that pass together. If the member fell so
   *   far behind that it missed the passing, or the client changed its member, a higher number that no other caller gets.
   * @throws CoordinationError `outcome-unknown` if the session has ended and it is not known whether all had passed
   *   before.
   */
  arrive(options?: AcquireOptions): Promise<number>;
}

/** Delivers each item to one taker, in FIFO order. If the taker is lost, its item is the next to be taken. */
export interface SharedQueue<T = unknown> {
  readonly name: string;
  /** @returns the item's number, which grows */
  add(item: T, options?: CallOptions): Promise<number>;
  /** Waits for an item. Takers are served in FIFO order. */
  take(options?: AcquireOptions): Promise<QueueItem<T>>;
  /** @returns the number of items that wait to be taken */
  size(options?: CallOptions): Promise<number>;
}

/** An item that was taken. It belongs to this member until it is done or given back, or the member is lost. */
export interface QueueItem<T> extends Tenure {
  readonly item: T;
  /**
   * Removes the item, which has been processed. You can call it again: after a call that timed out, another call waits for
   * the same result.
   * @throws CoordinationError `grant-lost` if another taker may have it by now.
   */
  done(options?: CallOptions): Promise<void>;
  /** Gives the item back; the next taker gets it. */
  giveBack(): Promise<void>;
}

/**
 * The caller's own state machine. Every member applies the same commands in the same order. `apply` must depend on its
 * arguments only: no clock, no randomness, no outside state. State and commands are plain data.
 */
export interface StateMachine<S, C, R> {
  /** @returns the state before the first command */
  init(): S;
  /**
   * Computes the next state and the result for the caller, without changing `state`. If it throws, the state is kept, and
   * the caller gets the error.
   */
  apply(state: S, command: C): readonly [state: S, result: R];
}

/** A state machine that the members replicate. */
export interface Replicated<S, C, R> {
  readonly name: string;
  /** Resolves with the result of `apply`, once a majority has the command and this member has applied it. */
  execute(command: C, options?: CallOptions): Promise<R>;
  /** @returns the state; linearizable: it includes all commands acknowledged before */
  read(options?: CallOptions): Promise<S>;
}

/** The shared state at a member; part of `MemberStatus`. */
export interface StateStatus {
  /** The leader of the log, as far as this member knows. */
  readonly leader: NodeId | null;
  readonly term: number;
  /** The revision of the last change that this member knows; null while it has not used the service. */
  readonly revision: number | null;
  /** This member's session; null if it has none now. */
  readonly session: number | null;
  /** Calls of this member that wait for their answer. */
  readonly waiting: number;
}

/** The part of a member that runs on its replicated service. Guarantees: docs/guide/map.md. */
export interface StateApi {
  /**
   * Opens the map of that name.
   *
   * @example
   * const stock = member.map<number>("stock");
   * const revision = await stock.put("apples", 3);
   * for await (const change of stock.watch({ after: revision })) console.log(change.key);
   * @throws UsageError if the name is invalid, or the member has no `dataDir`. After the member has left or failed, the
   *   calls of the map reject.
   */
  map<T = unknown>(name: string): SharedMap<T>;
  /** Opens the counter of that name. @throws the same errors as `map()` */
  counter(name: string): SharedCounter;
  /**
   * Calls `work`, and commits its writes if nothing that it has read has changed meanwhile; otherwise calls it again. All
   * writes take effect at one moment, or not at all. An error of `work` is rethrown if its reads were consistent; otherwise
   * `work` is called again. After a timeout, `work` may still run, but writes nothing.
   */
  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options?: CallOptions): Promise<R>;
  /** Opens the semaphore of that name. @throws the same errors as `map()` */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;
  /** Opens the read-write lock of that name. @throws the same errors as `map()` */
  readWriteLock(name: string): ReadWriteLock;
  /** Opens the barrier of that name. @throws the same errors as `map()` */
  barrier(name: string, options: BarrierOptions): Barrier;
  /**
   * Opens the queue of that name.
   *
   * @example
   * const item = await member.queue<Order>("orders").take();
   * await pack(item.item, { token: item.token, signal: item.signal });
   * await item.done();
   * @throws the same errors as `map()`
   */
  queue<T = unknown>(name: string): SharedQueue<T>;
  /**
   * Opens the caller's own state machine of that name. Define the same machine at every member, before its first use.
   *
   * @example
   * const balance = member.replicated("balance", { init: () => 0, apply: (state, by: number) => [state + by, state + by]
   * });
   * console.log(await balance.execute(5));
   * @throws the same errors as `map()`
   */
  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R>;
}
