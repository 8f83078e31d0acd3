/**
 * A lock or an election as `join()` gives it: a name and how it is run. What stands behind it is put away while nobody uses it,
 * and opened anew by those that do: so a handle may be kept for as long as one likes, or made for each use.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { AcquireOptions, Election, Grant, LeaderChange, Leadership, LeadOptions, Mutex } from "./api.ts";
import { useGrant } from "./held-grant.ts";
import type { LocalElection } from "./local-election.ts";
import type { LocalMutex } from "./local-mutex.ts";

type Token = number | null;

export class MutexHandle implements Mutex {
  readonly #open: () => LocalMutex;
  readonly name: string;
  readonly algorithm: string;
  #local: LocalMutex;

  constructor(open: () => LocalMutex) {
    this.#open = open;
    this.#local = open();
    this.name = this.#local.name;
    this.algorithm = this.#local.algorithm;
  }

  async acquire(options?: AcquireOptions): Promise<Grant> {
    if (this.#local.isRetired) this.#local = this.#open();
    return this.#local.acquire(options);
  }

  async use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    return useGrant(() => this.acquire(options), work);
  }
}

export class ElectionHandle implements Election<Token> {
  readonly #open: () => LocalElection;
  readonly #find: () => LocalElection | null;
  readonly #beforeLead: () => void;
  readonly name: string;
  readonly algorithm: string;
  #local: LocalElection;

  /**
   * @param find what is open of that name, if anything is.
   * @param beforeLead is called before each campaign by this handle, with what is open, and may refuse it.
   */
  constructor(open: () => LocalElection, find: () => LocalElection | null, beforeLead: () => void = () => {}) {
    this.#open = open;
    this.#find = find;
    this.#beforeLead = beforeLead;
    this.#local = open();
    this.name = this.#local.name;
    this.algorithm = this.#local.algorithm;
  }

  /** It is not opened for this: what is put away has no leader. */
  get leader(): NodeId | null {
    const local = this.#local.isRetired ? this.#find() : this.#local;
    return local?.leader ?? null;
  }

  async lead<T>(work: (leadership: Leadership<Token>) => T | Promise<T>, options?: LeadOptions): Promise<T> {
    const local = this.#now;
    this.#beforeLead();
    return local.lead(work, options);
  }

  watch(options?: Parameters<LocalElection["watch"]>[0]): AsyncIterableIterator<LeaderChange<Token>> {
    return this.#now.watch(options);
  }

  get #now(): LocalElection {
    if (this.#local.isRetired) this.#local = this.#open();
    return this.#local;
  }
}
