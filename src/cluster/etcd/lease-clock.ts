/**
 * Measures the age of leases. Every member uses its own clock to measure the time since it saw a lease renewed. The
 * leader expires leases whose TTL has passed. A member that sees the renewal late underestimates the age, so a lease
 * may outlast its TTL but never ends early. A change of leader does not shorten a lease either.
 */
import type { GrantedLease, KeyspaceChange, LeaseId } from "../../protocols/service/keyspace/vocabulary.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type { Service } from "../services/state/service.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";

interface Counted extends GrantedLease {
  readonly since: number;
}

const endOf = ({ since, ttl }: Counted): number => since + ttl * 1_000;

const SWEEP_MS = 500;
/** The maximum number of `expire` commands in flight. The log appends them together. */
const AT_ONCE = 64;

/** Expires leases while this member leads. */
export class LeaseClock {
  readonly #service: Service & { readonly leader: number | null };
  readonly #keyspace: KeyspaceClient;
  readonly #leases = new Map<LeaseId, Counted>();
  /** Whether there may be leases that this member has not seen. */
  #isBehind = false;
  #isSweeping = false;
  readonly #stop: () => void;

  constructor(service: Service & { readonly leader: number | null }, keyspace: KeyspaceClient) {
    this.#service = service;
    this.#keyspace = keyspace;
    this.#stop = service.listen((event) => {
      if (event.type === "keysChanged") this.#hear(event);
      else if (event.type === "restored") this.#isBehind = true;
      else if (event.type === "closed") this.close();
      if (event.type === "led" || event.type === "restored") this.#sweepSoon();
    });
  }

  /** Returns the remaining time in whole seconds, or null if this member has not seen the lease. */
  remaining(lease: LeaseId): number | null {
    const counted = this.#leases.get(lease);
    if (counted === undefined) return null;
    return Math.max(0, Math.floor((endOf(counted) - this.#service.platform.clock.now()) / 1_000));
  }

  /** Sorts leases by expiry. If this member has not seen a lease granted or renewed, its TTL starts now. */
  inOrder(leases: readonly GrantedLease[]): GrantedLease[] {
    const now = this.#service.platform.clock.now();
    const end = (lease: GrantedLease): number => endOf(this.#leases.get(lease.lease) ?? { ...lease, since: now });
    return leases.toSorted((a, b) => end(a) - end(b));
  }

  close(): void {
    this.#stop();
    this.#leases.clear();
    this.#isBehind = false;
  }

  #hear({ renewed, ended }: KeyspaceChange): void {
    if (ended !== null) this.#leases.delete(ended);
    if (renewed !== null) this.#count(renewed);
    if (ended !== null || renewed !== null) this.#sweepSoon();
  }

  #count(lease: GrantedLease): void {
    if (this.#leases.get(lease.lease)?.renewal === lease.renewal) return;
    this.#leases.set(lease.lease, { ...lease, since: this.#service.platform.clock.now() });
  }

  get #isNeeded(): boolean {
    const leads = this.#service.leader === this.#service.self;
    return leads && this.#service.closed === null && (this.#isBehind || this.#leases.size > 0);
  }

  #sweepSoon(): void {
    if (this.#isSweeping || !this.#isNeeded) return;
    this.#isSweeping = true;
    const { timers } = this.#service.platform;
    const sweep = async (): Promise<void> => {
      await sleep(timers, SWEEP_MS, { ref: false });
      if (this.#isNeeded) await this.#sweep().catch(() => {}); // The next sweep retries.
      this.#isSweeping = false;
      this.#sweepSoon();
    };
    void sweep();
  }

  async #sweep(): Promise<void> {
    if (this.#isBehind) {
      this.#isBehind = false;
      try {
        await this.#catchUp();
      } catch (error) {
        this.#isBehind = true;
        throw error;
      }
    }
    const now = this.#service.platform.clock.now();
    const over = [...this.#leases.values()].filter((lease) => now >= endOf(lease));
    for (let at = 0; at < over.length && this.#isNeeded; at += AT_ONCE) {
      const expire = ({ lease, renewal }: Counted): Promise<unknown> =>
        // Ignore errors. Either the lease has been renewed or has ended, or the next sweep retries.
        this.#keyspace.execute({ type: "expire", lease, renewal }).catch(() => {});
      await Promise.all(over.slice(at, at + AT_ONCE).map(expire));
    }
  }

  async #catchUp(): Promise<void> {
    const { leases } = await this.#keyspace.ask({ type: "leases" });
    const known = new Set(leases.map(({ lease }) => lease));
    for (const lease of this.#leases.keys()) if (!known.has(lease)) this.#leases.delete(lease);
    for (const lease of leases) this.#count(lease);
  }
}
