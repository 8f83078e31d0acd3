/**
 * What members share by name beside locks, elections and channels: maps, counters, semaphores, read-write locks, barriers, queues
 * and state machines of the caller's own. All of it is one replicated log with a copy at every member; docs/guide/map.md
 * says what it guarantees.
 */
import type { NodeId } from "../../../core/protocol.ts";
import type { AcquireOptions, Grant, Tenure } from "../tenure-api.ts";

/** What every call of shared state takes. */
export interface CallOptions {
  /** How long to wait at most, for all that the call does. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the call ends. What it has asked for may still be done. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A map by that name, the same at every member. Values are JSON data, or bytes (`Uint8Array`); what another member has put is not
 * checked against `T`.
 *
 * Each call throws `CoordinationError` `request-timeout`, `request-aborted`, `overloaded`, `outcome-unknown`, `member-left` or
 * `member-failed`; its `phase` says whether nothing was done (`never-sent`) or it may have been (`uncertain`). `UsageError` for
 * what cannot be, such as `too-large`.
 */
export interface SharedMap<T = unknown> {
  readonly name: string;
  /** What stands under the key; undefined where nothing does. Linearizable: it sees every write that had been acknowledged before. */
  get(key: string, options?: CallOptions): Promise<T | undefined>;
  /** The same, with the revision at which it was put. */
  entry(key: string, options?: CallOptions): Promise<Entry<T> | undefined>;
  /** @returns the revision of this write: it grows from write to write, over all keys and maps. */
  put(key: string, value: T, options?: PutOptions): Promise<number>;
  /**
   * Puts the value if the key was last put at this revision; 0: if nothing stands there.
   * @returns the revision of this write, or null if something else stands there.
   */
  compareAndSet(key: string, ifRevision: number, value: T, options?: PutOptions): Promise<number | null>;
  /**
   * Reads, calls `change`, and writes what it returns if nobody has written meanwhile; otherwise once more. A leased entry stays so
   * only with `leased`: without, it is permanent from then on.
   */
  update(key: string, change: (value: T | undefined) => T, options?: PutOptions): Promise<T>;
  /** @returns whether something stood there. With `ifRevision`: and had been put at that revision. */
  delete(key: string, options?: CallOptions & { readonly ifRevision?: number | undefined }): Promise<boolean>;
  /** Entries in the order of their keys, all as of one revision. */
  range(options?: RangeOptions): Promise<Range<T>>;
  /**
   * Every change, in order, without gap or repetition: those after the revision `after`, or from now on. Who reads slowly misses nothing, as long as the members remember it.
   * End it by `break`, `return()` or its signal: until then each change costs a little more, also if nobody reads.
   * It ends when its member leaves or its client closes.
   * @throws CoordinationError `compacted`, once changes that were still to come are not remembered any more: read the map, and watch from the revision of that.
   * `member-failed`, `member-removed` or `client-refused` after a failure.
   */
  watch(options?: WatchOptions): AsyncIterableIterator<Change<T>>;
}

export interface PutOptions extends CallOptions {
  /** The entry is deleted once this member has left, has crashed or has been cut off for too long. */
  readonly leased?: boolean | undefined;
}

export interface Entry<T> {
  readonly key: string;
  readonly value: T;
  readonly revision: number;
}

export interface RangeOptions extends CallOptions {
  /** Keys from this one on. */
  readonly from?: string | undefined;
  /** Keys before this one. */
  readonly to?: string | undefined;
  readonly prefix?: string | undefined;
  /** At most so many. Default, and at most: 1,000. */
  readonly limit?: number | undefined;
}

export interface Range<T> {
  readonly entries: readonly Entry<T>[];
  /** As of which all of it stood there: `watch({ after: revision })` goes on from there. */
  readonly revision: number;
  /** Whether there are more, from behind the last key on. */
  readonly more: boolean;
}

export interface WatchOptions {
  /** The changes behind this revision. Default: from now on. */
  readonly after?: number | undefined;
  /** Only this key, or keys that begin like this. */
  readonly key?: string | undefined;
  readonly prefix?: string | undefined;
  /** Aborted: the watch ends. */
  readonly signal?: AbortSignal | undefined;
}

export type Change<T> =
  | { readonly type: "put"; readonly key: string; readonly value: T; readonly revision: number }
  | { readonly type: "delete"; readonly key: string; readonly revision: number };

/** Reads and writes of several keys and maps that happen at one moment, or not at all. */
export interface Transaction {
  get<T>(map: SharedMap<T>, key: string): Promise<T | undefined>;
  /** A leased entry stays so only with `leased`: without, it is permanent from then on. */
  put<T>(map: SharedMap<T>, key: string, value: T, options?: Pick<PutOptions, "leased">): void;
  delete<T>(map: SharedMap<T>, key: string): void;
}

/** A whole number by that name, the same at every member; 0 before it is first used. Safe integers: what goes beyond is refused (`overflow`). */
export interface SharedCounter {
  readonly name: string;
  get(options?: CallOptions): Promise<number>;
  /** @returns what it is then. Default 1; below 0 it counts down. */
  add(by?: number, options?: CallOptions): Promise<number>;
  set(value: number, options?: CallOptions): Promise<void>;
}

export interface SemaphoreOptions {
  /** How many there are, the same at every member. */
  readonly permits: number;
}

export interface PermitOptions extends AcquireOptions {
  /** How many are asked for. Default 1. */
  readonly permits?: number | undefined;
}

export interface Semaphore {
  readonly name: string;
  readonly permits: number;
  /** Waits for so many permits, by default 1. Among all members, first come, first served. Throws as `Mutex.acquire` does. */
  acquire(options?: PermitOptions): Promise<Grant>;
  use<T>(work: (grant: Grant) => T | Promise<T>, options?: PermitOptions): Promise<T>;
}

/** Many readers, or one writer. A writer that waits is not overtaken by readers that come later. */
export interface ReadWriteLock {
  readonly name: string;
  read(options?: AcquireOptions): Promise<Grant>;
  write(options?: AcquireOptions): Promise<Grant>;
}

export interface BarrierOptions {
  /** How many must arrive, the same at every member. */
  readonly parties: number;
}

/** Those who arrive wait until so many have; then all pass, and it begins anew. */
export interface Barrier {
  readonly name: string;
  readonly parties: number;
  /**
   * A caller whose time is over, or whose signal is aborted, is told by the log whether all had passed by then: if so, this returns. With the
   * phase `never-acquired` it has not been counted; with `uncertain`, where nothing is heard for 0.25 s or the member has left, it may
   * have been, and others may pass by it.
   * @returns a number that grows each time all pass, the same for all who pass together. A higher one, which nobody else has, where a member
   * has fallen so far behind, or a client has changed its member, that it was not told.
   * @throws CoordinationError `outcome-unknown` if the session has ended, and it is not known whether all had passed before.
   */
  arrive(options?: AcquireOptions): Promise<number>;
}

/** Each item goes to one taker, in the order in which they were added; an item whose taker is lost goes to another, first of all. */
export interface SharedQueue<T = unknown> {
  readonly name: string;
  /** @returns the item's number, which grows. */
  add(item: T, options?: CallOptions): Promise<number>;
  /** Waits for an item. Takers are served first come, first served. */
  take(options?: AcquireOptions): Promise<QueueItem<T>>;
  /** Items that wait to be taken. */
  size(options?: CallOptions): Promise<number>;
}

/** An item that was taken: this member's until it is done or given back, or this member is lost. */
export interface QueueItem<T> extends Tenure {
  readonly item: T;
  /**
   * It has been worked off, and is gone. Twice is once: after a call that was not answered in time, another waits for the same.
   * @throws CoordinationError `grant-lost` if another may have it by now.
   */
  done(options?: CallOptions): Promise<void>;
  /** It goes to the next taker. */
  giveBack(): Promise<void>;
}

/**
 * The caller's own state machine: every member applies the same commands in the same order. `apply` must depend on nothing but
 * its arguments: no clock, no randomness, nothing from outside. State and commands are plain data.
 */
export interface StateMachine<S, C, R> {
  /** The state before the first command. */
  init(): S;
  /**
   * What the command makes of the state, and what its caller gets. It does not change `state`; it gives the next one. If it throws,
   * the state stays, and its caller gets the error.
   */
  apply(state: S, command: C): readonly [state: S, result: R];
}

export interface Replicated<S, C, R> {
  readonly name: string;
  /** Resolves with what `apply` gave, once a majority has the command and this member has applied it. */
  execute(command: C, options?: CallOptions): Promise<R>;
  /** The state, linearizable: all commands acknowledged before are in it. */
  read(options?: CallOptions): Promise<S>;
}

/** How the shared state stands at a member; part of `MemberStatus`. */
export interface StateStatus {
  /** Who leads the log in this member's eyes. */
  readonly leader: NodeId | null;
  readonly term: number;
  /** Of the last change that this member knows; null while it has not used the service. */
  readonly revision: number | null;
  /** This member's session, if it has one now. */
  readonly session: number | null;
  /** Calls that wait for their answer here. */
  readonly waiting: number;
}

/** The part of a member that is on its replicated service. docs/guide/map.md says what it guarantees. */
export interface StateApi {
  /**
   * The map of that name.
   *
   * @example
   * const stock = member.map<number>("stock");
   * const revision = await stock.put("apples", 3);
   * for await (const change of stock.watch({ after: revision })) console.log(change.key);
   * @throws UsageError for a name that cannot be, or without a `dataDir`. After the member has left or failed, the calls of the map reject.
   */
  map<T = unknown>(name: string): SharedMap<T>;
  /** The counter of that name. @throws as `map` does */
  counter(name: string): SharedCounter;
  /**
   * Calls `work`, and writes what it has written if nothing that it has read has changed by then; otherwise calls it anew. All
   * of it happens at one moment, or not at all. What `work` throws is thrown if what it has read stood there at one moment; otherwise
   * it is called anew, too. Once the time is over, `work` may still run, and writes nothing.
   */
  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options?: CallOptions): Promise<R>;
  /** So many permits under one name. @throws as `map` does */
  semaphore(name: string, options: SemaphoreOptions): Semaphore;
  /** The read-write lock of that name. @throws as `map` does */
  readWriteLock(name: string): ReadWriteLock;
  /** The barrier of that name. @throws as `map` does */
  barrier(name: string, options: BarrierOptions): Barrier;
  /**
   * The queue of that name.
   *
   * @example
   * const item = await member.queue<Order>("orders").take();
   * await pack(item.item, { token: item.token, signal: item.signal });
   * await item.done();
   * @throws as `map` does
   */
  queue<T = unknown>(name: string): SharedQueue<T>;
  /**
   * The caller's own state machine under that name: define the same at every member, before it is used.
   *
   * @example
   * const balance = member.replicated("balance", { init: () => 0, apply: (state, by: number) => [state + by, state + by] });
   * console.log(await balance.execute(5));
   * @throws as `map` does
   */
  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R>;
}
