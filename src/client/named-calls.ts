/**
 * Locks, elections and shared state for a process that is not a member. They are provided by a cluster of members or by
 * an external engine.
 */
import type { Election, ElectionOptions, Mutex } from "../cluster/services/api.ts";
import { CoordinationError } from "../cluster/services/coordination-error.ts";
import { requireName } from "../cluster/services/instance-name.ts";
import * as may from "../cluster/services/known-options.ts";
import { requireOptions } from "../cluster/services/known-options.ts";
import { ElectionHandle, type LocalElection } from "../cluster/services/local-election.ts";
import { controllerForMany } from "../cluster/services/on-abort.ts";
import { Arrivals } from "../cluster/services/state/arrivals.ts";
import { limits } from "../cluster/services/state/limits.ts";
import { LocalCounter } from "../cluster/services/state/local-counter.ts";
import { LocalMap } from "../cluster/services/state/local-map.ts";
import { LocalBarrier, LocalQueue } from "../cluster/services/state/local-queue.ts";
import { LogElection } from "../cluster/services/state/log-election.ts";
import { Grants, LocalReadWriteLock, LocalSemaphore, SharedMutex } from "../cluster/services/state/named-grants.ts";
import type { Service } from "../cluster/services/state/service.ts";
import type {
  Barrier,
  BarrierOptions,
  CallOptions,
  ReadWriteLock,
  Semaphore,
  SemaphoreOptions,
  SharedCounter,
  SharedMap,
  SharedQueue,
  StateApi,
  Transaction,
} from "../cluster/services/state/state-api.ts";
import { transact } from "../cluster/services/state/transactions.ts";
import { textOf } from "../cluster/services/state/value-text.ts";
import { Waiters } from "../cluster/services/state/waiters.ts";
import { Waits } from "../cluster/services/state/waits.ts";
import { sleep } from "../runtime/platform/sleep.ts";

const count = may.needed(may.positive);
const MAX_ELECTIONS = 1_000;
/** How long closing waits for work under leadership to end. A leaving member waits for the same time. */
const LAST_WORK_MS = 1_000;

/** A service that can end this process's session. */
interface Departing extends Service {
  close(reason: CoordinationError): void;
  depart(): Promise<void>;
}

/** Locks, elections and shared state by name, based on a service. */
export class NamedCalls implements Omit<StateApi, "replicated"> {
  readonly service: Departing;
  readonly #waits: Waits;
  readonly #arrivals: Arrivals;
  readonly #grants: Grants;
  readonly #elections = new Map<string, LogElection>();
  readonly #controller = controllerForMany();
  /** Called when the service may have connected or closed. */
  protected changed: () => void = () => {};
  #departing: Promise<void> | null = null;

  constructor(service: Departing) {
    this.service = service;
    const waiters = new Waiters(service);
    this.#waits = new Waits(service, waiters);
    this.#arrivals = new Arrivals(service, waiters);
    this.#grants = new Grants(service, this.#waits);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  map<T>(name: string): SharedMap<T> {
    return new LocalMap<T>(this.#used(name), this.service);
  }

  counter(name: string): SharedCounter {
    return new LocalCounter(this.#used(name), this.service);
  }

  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options: CallOptions = {}): Promise<R> {
    return transact(this.service, work, options);
  }

  mutex(name: string): Mutex {
    return new SharedMutex(this.#used(name), this.#grants);
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    requireOptions("semaphore", options, { permits: count });
    return new LocalSemaphore(this.#used(name), options.permits, this.#grants);
  }

  readWriteLock(name: string): ReadWriteLock {
    return new LocalReadWriteLock(this.#used(name), this.#grants);
  }

  barrier(name: string, options: BarrierOptions): Barrier {
    requireOptions("barrier", options, { parties: count });
    return new LocalBarrier(this.#used(name), options.parties, this.#arrivals);
  }

  queue<T>(name: string): SharedQueue<T> {
    return new LocalQueue<T>(this.#used(name), this.service, this.#waits);
  }

  election(name: string, options: Pick<ElectionOptions, "metadata"> = {}): Election {
    requireOptions("election", options, { metadata: may.anything });
    this.#used(name);
    const { metadata } = options;
    const note = metadata === undefined ? "" : textOf(metadata, "metadata of election()", limits.noteBytes);
    const open = (): LocalElection => this.#election(name).local;
    const find = (): LocalElection | null => this.#elections.get(name)?.local ?? null;
    return new ElectionHandle(open, find, () => this.#election(name).announce(note));
  }

  /** @param why the reason that current holders and later calls get */
  protected depart(why: string): Promise<void> {
    this.#departing ??= this.#depart(new CoordinationError("client-closed", "lost", why));
    return this.#departing;
  }

  async #depart(reason: CoordinationError): Promise<void> {
    this.#controller.abort(reason);
    await Promise.race([this.#stopLeading(reason), sleep(this.service.platform.timers, LAST_WORK_MS, { ref: false })]);
    this.service.close(reason);
    this.changed();
    await this.service.depart();
  }

  /** Called when the service may have connected or closed. If it has closed, all work under leadership is aborted. */
  protected look(): void {
    const { closed } = this.service;
    this.changed();
    if (closed !== null && !this.signal.aborted) this.fail(closed);
  }

  protected fail(reason: CoordinationError): void {
    this.service.close(reason);
    this.changed();
    this.#controller.abort(reason);
    void this.#stopLeading(reason);
    this.#departing ??= this.service.depart();
  }

  /** Resolves once no work in this process is running under leadership. */
  async #stopLeading(reason: CoordinationError): Promise<void> {
    await Promise.all([...this.#elections.values()].map(({ local }) => local.stopWorking(reason)));
  }

  /**
   * Closes the unused election that was opened first. Its next use opens it again.
   * @returns whether there was one
   */
  protected retireUnused(): boolean {
    for (const [name, election] of this.#elections) {
      if (election.isUsed) continue;
      election.retire();
      this.#elections.delete(name);
      return true;
    }
    return false;
  }

  #election(name: string): LogElection {
    const known = this.#elections.get(name);
    if (known !== undefined) return known;
    while (this.#elections.size >= MAX_ELECTIONS && this.retireUnused());
    const election = new LogElection(this.service, { name, onChange() {} });
    this.#elections.set(name, election);
    return election;
  }

  /**
   * @throws UsageError if the name is invalid. After the client has closed, this method does not throw, but the calls
   *   reject
   */
  #used(name: string): string {
    return requireName(name);
  }
}
