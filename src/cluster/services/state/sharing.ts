/** A member's calls on its shared state, and the servers that make such calls for clients. */
import { Doors } from "./doors.ts";
import type { SharedState } from "./shared-state.ts";
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
  Transaction,
} from "./state-api.ts";

/** The base class for members that share state. */
export abstract class Sharing implements StateApi {
  abstract readonly state: SharedState;
  readonly doors = new Doors();

  get clients(): string | null {
    return this.doors.clients?.url ?? null;
  }

  get etcd(): string | null {
    return this.doors.etcd?.url ?? null;
  }

  map<T>(name: string): SharedMap<T> {
    return this.state.map<T>(name);
  }

  counter(name: string): SharedCounter {
    return this.state.counter(name);
  }

  transaction<R>(work: (transaction: Transaction) => R | Promise<R>, options?: CallOptions): Promise<R> {
    return this.state.transaction(work, options);
  }

  semaphore(name: string, options: SemaphoreOptions): Semaphore {
    return this.state.semaphore(name, options);
  }

  readWriteLock(name: string): ReadWriteLock {
    return this.state.readWriteLock(name);
  }

  barrier(name: string, options: BarrierOptions): Barrier {
    return this.state.barrier(name, options);
  }

  queue<T>(name: string): SharedQueue<T> {
    return this.state.queue<T>(name);
  }

  replicated<S, C, R>(name: string, machine: StateMachine<S, C, R>): Replicated<S, C, R> {
    return this.state.replicated(name, machine);
  }
}
