/**
 * Implements the interface of the replicated service on an external engine. Elections, locks and maps run on it as they
 * do on a cluster. It does not cache any engine state, but reads it before each decision. Hints only trigger reads.
 */
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { type Call, type Calls, type IsWanted, withinTime } from "../cluster/services/state/calls.ts";
import { refusalOf } from "../cluster/services/state/refusals.ts";
import type { Done, Found, Listener, Service, Told, Topic } from "../cluster/services/state/service.ts";
import type { NodeId } from "../core/protocol.ts";
import {
  type Operation,
  type Query,
  type Result,
  refuse,
} from "../protocols/service/coordination-service/operations.ts";
import { newCounts } from "../runtime/metrics.ts";
import type { Platform, Timer } from "../runtime/platform/platform.ts";
import { sleep } from "../runtime/platform/sleep.ts";
import { type LastFailures, reasonOf } from "./bounded-store.ts";
import { DeadKeys } from "./recipes/dead-keys.ts";
import { FollowedMaps } from "./recipes/followed-maps.ts";
import { History } from "./recipes/history.ts";
import { Keys } from "./recipes/keys.ts";
import type { Asking } from "./recipes/lock-document.ts";
import { Locks } from "./recipes/locks.ts";
import { Retrying } from "./recipes/pacing.ts";
import { Upkeep } from "./recipes/upkeep.ts";
import { isForeseen, refused, type Store, StoreError } from "./store.ts";

export interface EngineServiceOptions {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly store: Store;
  /** The failures of calls to `store`. */
  readonly failures: LastFailures;
  readonly ttlMs: number;
  onChange(): void;
}

const MAX_WAITERS = 10_000;
const LOOKS = 3;
/** Hints that arrive within this time are handled together. */
const GATHER_MS = 2;
const WAIT_FOR_SESSION_MS = 20;
const NUMBERS_PER_MS = 1_000;
const RESTORED = "the engine was restored to an earlier state, such as from a backup";
const NOT_HELD = "the engine no longer has this grant, for example after a restore from a backup";
const always = (): boolean => true;

/** The service for one process on an engine. */
export class EngineService implements Service {
  readonly platform: EngineServiceOptions["platform"];
  /** The id of the first session. */
  self: NodeId = 0;
  readonly counts = newCounts();
  readonly maxWaiters = MAX_WAITERS;
  /** Always null. A cached revision could be outdated, so callers that need one request it from the engine. */
  readonly revision = null;
  closed: CoordinationError | null = null;
  readonly #store: Store;
  readonly #history: History;
  readonly #options: EngineServiceOptions;
  readonly #listeners = new Set<Listener>();
  readonly #own = new Set<number>();
  readonly #upkeep: Upkeep;
  readonly #locks: Locks;
  readonly #keys: Keys;
  readonly #dead: DeadKeys;
  readonly #maps: FollowedMaps;
  readonly #calls: Calls = {
    begin: () => this.use(),
    end: () => {},
    why: () => this.why,
    cause: () => this.cause,
    closed: () => this.closed,
  };
  readonly #retrying: Retrying;
  readonly #ticking: Timer;
  readonly #forgetHints: () => void;
  readonly #name: string;
  #number: number;
  #writes = 0;
  /** Settles once every watch that has been started so far has its start revision. */
  #before: Promise<unknown> = Promise.resolve();
  #isLooking = false;
  #looksAgain = false;

  constructor(options: EngineServiceOptions) {
    const { platform, ttlMs } = options;
    this.platform = platform;
    this.#options = options;
    const retrying = new Retrying(platform);
    const history = new History({ ...options, retrying, restored: () => this.#restored() });
    const { store } = history;
    this.#history = history;
    this.#store = store;
    this.#number = Math.floor(platform.clock.stamp()) * NUMBERS_PER_MS;
    this.#name = platform.random.name();
    this.#retrying = retrying;
    const tell = (event: Told): void => this.#tell(event, null);
    const isOwn = (session: number): boolean => session === this.session;
    this.#locks = new Locks({ history, retrying, isOwn, tell, lost: () => this.#upkeep.abandon(NOT_HELD) });
    this.#dead = new DeadKeys(store, platform.timers);
    this.#keys = new Keys({ store, retrying, dead: this.#dead, writer: () => this.#writer() });
    this.#maps = new FollowedMaps({ store, keys: this.#keys, dead: this.#dead, tell });
    this.#upkeep = new Upkeep({ ...this.#upkeepEvents(), platform, history, retrying, ttlMs });
    this.#ticking = platform.timers.every(ttlMs / LOOKS, () => this.#tick()).unref();
    this.#forgetHints = store.onHint(() => void this.#lookAround());
  }

  get session(): number | null {
    return this.#upkeep.session;
  }

  get until(): number | null {
    return this.#upkeep.until;
  }

  /** The last failed attempt to open or renew a session. */
  get lastFailure(): StoreError | null {
    return this.#upkeep.lastFailure;
  }

  get why(): string {
    const { cause } = this;
    const { name } = this.#store;
    const silent = this.session === null ? [`${name} does not answer`] : [];
    const failed = cause === undefined ? [] : [`a call to ${name} failed: ${reasonOf(cause, name)}`];
    return [...silent, ...failed].join("; ");
  }

  get cause(): StoreError | undefined {
    return this.#options.failures.last ?? undefined;
  }

  start(): void {
    this.#upkeep.start();
  }

  use(): void {
    if (this.closed !== null) throw this.closed;
  }

  isOwn(session: number): boolean {
    return this.#own.has(session);
  }

  isOfThisRun(session: number): boolean {
    return this.isOwn(session);
  }

  number(): number {
    this.#number += 1;
    return this.#number;
  }

  async current(): Promise<number> {
    const found = this.#store.revision();
    const settled = found.catch(() => {});
    this.#before = Promise.all([this.#before, settled]);
    return found;
  }

  async submit<O extends Operation>(operation: O, isWanted: IsWanted): Promise<Done<O>> {
    this.use();
    await this.#before;
    const { revision, result } = await this.#carryOut(operation, isWanted);
    if (result.type === "refused") throw refusalOf(result);
    return { revision, session: this.session ?? 0, result } as Done<O>;
  }

  async query<Q extends Query>(query: Q, isWanted: IsWanted = always): Promise<Found<Q>> {
    for (let tries = 0; ; tries++) {
      this.use();
      try {
        return (await this.#ask(query)) as Found<Q>;
      } catch (error) {
        if (!(error instanceof StoreError) || !isWanted()) throw error;
        await this.#retrying.pause(tries);
      }
    }
  }

  call<T>(call: Call, answer: (isWanted: IsWanted) => Promise<T>): Promise<T> {
    return withinTime(this.platform, call, answer, this.#calls);
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  follow(topic: Topic, name: string): () => void {
    return topic === "map" ? this.#maps.follow(name) : this.#locks.follow(name);
  }

  /** Ends all grants for this reason. Later calls are rejected. */
  close(reason: CoordinationError): void {
    if (this.closed !== null) return;
    this.closed = reason;
    this.platform.timers.cancel(this.#ticking);
    this.#forgetHints();
    this.#tell({ type: "closed", reason }, null);
    this.#listeners.clear();
  }

  /** Ends the session, so that other processes can acquire its locks immediately, and closes the connection. */
  async depart(): Promise<void> {
    await this.#upkeep.stop();
    await this.#dead.leave();
    await this.#store.close().catch(() => {});
  }

  async #carryOut(operation: Operation, isWanted: IsWanted): Promise<{ revision: number; result: Result }> {
    switch (operation.type) {
      case "acquire":
      case "release":
      case "withdraw":
        return this.#locks.submit(operation, await this.#askingWhile(isWanted));
      case "put":
      case "delete":
      case "transaction":
      case "add":
      case "set": {
        await this.#sessionOnce(isWanted);
        return this.#keys.submit(operation, () => (this.closed === null && isWanted() ? (this.session ?? 0) : null));
      }
      default:
        return {
          revision: 0,
          result: refuse("bad-operation", `${operation.type}: not supported by an external engine`),
        };
    }
  }

  async #ask(query: Query): Promise<{ revision: number; answer: unknown }> {
    switch (query.type) {
      case "get":
        return this.#keys.get(query.map, query.key);
      case "range":
        return this.#keys.range(query);
      case "changes":
        return this.#maps.changes(query.map, query.after);
      case "count":
        return this.#keys.count(query.name);
      case "holders":
        return this.#locks.holders(query.name);
      default:
        throw refused("bad-operation", `${query.type}: not supported by an external engine`);
    }
  }

  /**
   * Waits for a session and returns a function that returns the requester. This function returns null once the session
   * has ended or the caller is no longer waiting, because a request must then be submitted again in the next session.
   */
  async #askingWhile(isWanted: IsWanted): Promise<() => Asking | null> {
    const session = await this.#sessionOnce(isWanted);
    const asking = { session: session ?? 0, member: this.self };
    return () => (session !== null && session === this.session && isWanted() ? asking : null);
  }

  /** Waits for a session. Returns null once the caller is no longer waiting. */
  async #sessionOnce(isWanted: IsWanted): Promise<number | null> {
    while (this.closed === null && isWanted()) {
      if (this.session !== null) return this.session;
      await sleep(this.platform.timers, WAIT_FOR_SESSION_MS, { ref: false });
    }
    return null;
  }

  #upkeepEvents() {
    return {
      began: (session: number): void => {
        this.#own.add(session);
        if (this.self === 0) this.self = session;
        this.#tell({ type: "began", session }, null);
      },
      confirmed: (session: number, until: number): void => {
        this.#tell({ type: "confirmed", session }, until);
        this.#options.onChange();
      },
      lost: (session: number, why?: string): void => {
        this.#locks.forgetSession();
        this.#tell({ type: "lost", session, why }, null);
        this.#own.delete(session);
      },
      failed: (error: Error): void => {
        this.close(new CoordinationError("client-refused", "uncertain", error.message, { cause: error }));
        this.#options.onChange();
      },
    };
  }

  /**
   * Handles a restore of the engine. This process may have read, reported or been granted something that is missing
   * from the restored state.
   */
  #restored(): void {
    this.#maps.restart();
    this.#tell({ type: "rolled-back" }, null);
    this.#upkeep.abandon(RESTORED);
  }

  #tick(): void {
    void this.#locks.lookAtOwn();
    void this.#lookAround();
  }

  #writer(): string {
    this.#writes += 1;
    return `${this.#name}.${this.#writes}`;
  }

  /** Handles hints, one round at a time. Hints that arrive during a round cause one more round. */
  async #lookAround(): Promise<void> {
    if (this.closed !== null) return;
    this.#looksAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#looksAgain && this.closed === null) {
        this.#looksAgain = false;
        await sleep(this.platform.timers, GATHER_MS, { ref: false });
        if (await this.#isHistoryKnown()) await Promise.all([this.#locks.look(), this.#maps.look()]);
      }
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * If maps are being followed, checks that the engine was not restored. If another process detected a restore only
   * after the engine had passed the lost revisions, the watches in this process must end, too. Returns false to try
   * again later.
   */
  async #isHistoryKnown(): Promise<boolean> {
    try {
      if (this.#maps.areFollowed) await this.#history.check();
      return true;
    } catch (error) {
      if (!isForeseen(error)) throw error;
      return false; // The next round will try again.
    }
  }

  #tell(event: Told, until: number | null): void {
    for (const listener of [...this.#listeners]) listener(event, until);
  }
}
