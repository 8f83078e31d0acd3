/** All that members share by name, on the replicated service of this member. */
import type { Mutex } from "../api.ts";
import { requireName } from "../instance-name.ts";
import * as may from "../known-options.ts";
import { requireOptions } from "../known-options.ts";
import { LocalCounter } from "./local-counter.ts";
import { LocalMap } from "./local-map.ts";
import { LocalBarrier, LocalQueue } from "./local-queue.ts";
import { Grants, LocalReadWriteLock, LocalSemaphore, SharedMutex } from "./named-grants.ts";
import { LocalReplicated, type Machines } from "./replicated.ts";
import { ServiceHost, type ServiceHostOptions } from "./service-host.ts";
import type {
  Barrier,
  BarrierOptions,
  CallOptions,
  ReadWriteLock,
  Replicated,
  Semaphore,
  SemaphoreOptions,
  SharedCounter,
  SharedMap,
  SharedQueue,
  StateApi,
  StateMachine,
  StateStatus,
  Transaction,
} from "./state-api.ts";
import { transact } from "./transactions.ts";
import { Waits } from "./waits.ts";

const count = may.needed(may.positive);

export class SharedState implements StateApi {
  readonly host: ServiceHost;
  readonly waits: Waits;
  readonly #grants: Grants;

  /** @param machines that the replicas look up. */
  constructor(
    options: ServiceHostOptions,
    private readonly machines: Machines,
  ) {
    this.host = new ServiceHost(options);
    this.waits = new Waits(this.host);
    this.#grants = new Grants(this.host, this.waits);
  }

  map<T>(name: string): SharedMap<T> {
    return new LocalMap<T>(this.#used(name), this.host);
  }

  counter(name: string): SharedCounter {
    return new LocalCounter(this.#used(name), this.host);
  }

  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options: CallOptions = {}): Promise<R> {
    return transact(this.host, work, options);
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
    return new LocalBarrier(this.#used(name), options.parties, this.waits);
  }

  queue<T>(name: string): SharedQueue<T> {
    return new LocalQueue<T>(this.#used(name), this.host, this.waits);
  }

  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R> {
    requireOptions("replicated", machine, { init: may.work, apply: may.work });
    this.machines.define(this.#used(name), machine);
    return new LocalReplicated<S, C, R>(name, this.host);
  }

  get status(): StateStatus | null {
    const { view, session, waiting } = this.host;
    if (view === null) return null;
    const { role, leader = null, term = 0, log } = view;
    return { role, leader, term, decided: log?.decided ?? 0, session, waiting };
  }

  /** @throws UsageError for a name that cannot be, or without a `dataDir`. */
  #used(name: string): string {
    this.host.use();
    return requireName(name);
  }
}
