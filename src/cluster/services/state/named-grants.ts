/** Locks, semaphores and read-write locks: how each kind uses the grants under its name. */
import type { AcquireOptions, Grant, Mutex } from "../api.ts";
import type { CoordinationError } from "../coordination-error.ts";
import { HeldGrant, useGrant } from "../held-grant.ts";
import type * as may from "../known-options.ts";
import { duration, type Rules, requireOptions, signal } from "../known-options.ts";
import { isGivenUp } from "../tenure.ts";
import type { Service } from "./service.ts";
import type { PermitOptions, ReadWriteLock, Semaphore } from "./state-api.ts";
import type { Place, Waits } from "./waits.ts";

/** The maximum number of concurrent readers. */
const READERS = 1_000_000;

/** A request for a grant under a name. */
interface Wish {
  /** The kind of object. Each kind has its own names. */
  readonly kind: "mutex" | "semaphore" | "read-write";
  readonly name: string;
  readonly what: string;
  readonly mode: "exclusive" | "shared";
  readonly permits: number;
  readonly capacity: number;
}

/** This process's grants. Each call has its own position in the queue under its name. */
export class Grants {
  readonly #service: Service;
  readonly #waits: Waits;
  constructor(service: Service, waits: Waits) {
    this.#service = service;
    this.#waits = waits;
  }

  async acquire(wish: Wish, options: AcquireOptions): Promise<Grant> {
    const { locks } = this.#service.counts;
    const { held } = await this.#waits.wait(this.#placeOf(wish), options);
    locks.acquired += 1;
    return held;
  }

  #placeOf({ kind, name: title, what, mode, permits, capacity }: Wish): Place<HeldGrant> {
    const { platform, counts } = this.#service;
    const name = `${kind}/${title}`;
    const onEnd = (reason: CoordinationError): void => {
      counts.locks[isGivenUp(reason) ? "released" : "lost"] += 1;
    };
    return {
      name,
      what,
      ask: (wait) => ({ type: "acquire", name, wait, mode, permits, capacity, note: "" }),
      giveUp: (wait) => ({ type: "withdraw", name, wait }),
      hold: (token, _value, over) => new HeldGrant({ platform, token, name: title, what, over, onEnd }),
    };
  }
}

/** The rules for `AcquireOptions`. */
export const acquireRules: Rules<AcquireOptions> = {
  timeoutMs: { ...duration, wanted: `${duration.wanted}, since acquiring a lock over a network takes time` },
  signal,
};

/** The object that `mutex()` returns. */
export class SharedMutex implements Mutex {
  readonly #grants: Grants;

  constructor(
    readonly name: string,
    grants: Grants,
  ) {
    this.#grants = grants;
  }

  async acquire(options: AcquireOptions = {}): Promise<Grant> {
    requireOptions("acquire", options, acquireRules);
    const { name } = this;
    const what = `the lock "${name}"`;
    return this.#grants.acquire({ kind: "mutex", name, what, mode: "exclusive", permits: 1, capacity: 1 }, options);
  }

  async use<T>(work: (grant: Grant) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    return useGrant(() => this.acquire(options), work);
  }
}

/** The object that `semaphore()` returns. */
export class LocalSemaphore implements Semaphore {
  readonly #grants: Grants;
  constructor(
    readonly name: string,
    readonly permits: number,
    grants: Grants,
  ) {
    this.#grants = grants;
  }

  async acquire(options: PermitOptions = {}): Promise<Grant> {
    const rules: Rules<PermitOptions> = { ...acquireRules, permits: permitsUpTo(this.permits) };
    requireOptions("acquire", options, rules);
    const { permits = 1 } = options;
    const { name, permits: capacity } = this;
    const what = `a permit from the semaphore "${name}"`;
    return this.#grants.acquire({ kind: "semaphore", name, what, mode: "shared", permits, capacity }, options);
  }

  async use<T>(work: (grant: Grant) => T | Promise<T>, options?: PermitOptions): Promise<T> {
    return useGrant(() => this.acquire(options), work);
  }
}

/** The object that `readWriteLock()` returns. */
export class LocalReadWriteLock implements ReadWriteLock {
  readonly #grants: Grants;
  constructor(
    readonly name: string,
    grants: Grants,
  ) {
    this.#grants = grants;
  }

  async read(options: AcquireOptions = {}): Promise<Grant> {
    requireOptions("read", options, acquireRules);
    return this.#grants.acquire(this.#place("shared", "for reading"), options);
  }

  async write(options: AcquireOptions = {}): Promise<Grant> {
    requireOptions("write", options, acquireRules);
    return this.#grants.acquire(this.#place("exclusive", "for writing"), options);
  }

  #place(mode: Wish["mode"], why: string): Wish {
    const { name } = this;
    const what = `the lock "${name}" ${why}`;
    return { kind: "read-write", name, what, mode, permits: 1, capacity: READERS };
  }
}

const permitsUpTo = (most: number): may.Rule => ({
  wanted: `a whole number from 1 to ${most}`,
  accepts: (value) => Number.isSafeInteger(value) && (value as number) > 0 && (value as number) <= most,
});
