/**
 * Uses the clients' other shared objects, besides keys, counters and one lock: permits, readers and writers, a barrier,
 * an election, large items, and a resource under a lock, which also receives writes with old tokens. Throws an error
 * for a violation.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import type { Client, Tenure } from "../../src/index.ts";
import { ExclusiveUse, type Room } from "../testing/exclusive-use.ts";
import { GuardedResource } from "./guarded-resource.ts";

const PERMITS = 3;
const PARTIES = 2;
/** Larger than the number of concurrent readers. A writer takes all permits. */
const READERS = 1_000;
const HOLDS_MS = [0, 50] as const;
/** Delays of a write. The second one is longer than the next holder takes to write. */
const LATE_MS = [0, 400] as const;
/**
 * Large enough for several log entries, up to the maximum size of a value. Large items go through a queue, because a
 * map would soon discard changes that its watches need.
 */
const LARGE_CHARS = [60_000, 500_000] as const;
const MAX_LARGE = 4;
const LARGE_EVERY_MS = 500;
const WITHIN = { timeoutMs: 60_000 };
const ARRIVES_WITHIN = { timeoutMs: 2_000 };

export class SharingClients {
  readonly #draw: Random;
  readonly #resource = new GuardedResource();
  readonly #exclusive = new ExclusiveUse(() => performance.now());
  readonly #counts = { permits: 0, readings: 0, writings: 0, passes: 0, leaderships: 0, large: 0 };
  /** For each generation of the barrier: the number of arrivals that passed. */
  readonly #passed = new Map<number, number>();
  #largeItems = 0;
  readonly #perhapsDone = new Set<string>();
  readonly #large = { perhaps: new Set<string>(), certain: new Set<string>(), done: new Set<string>() };

  constructor(draw: Random) {
    this.#draw = draw;
  }

  /** How often each action has been done. */
  get counts(): Readonly<Record<string, number>> {
    return { ...this.#counts, written: this.#resource.counts.taken, stale: this.#resource.counts.stale };
  }

  get account(): string {
    return Object.entries(this.counts)
      .map(([what, count]) => `${count} ${what}`)
      .join(", ");
  }

  /** Returns the actions that a client repeats. */
  worksOf(client: Client, number: number): (() => Promise<void>)[] {
    return [
      () => this.#takePermits(client, number),
      () => this.#readOrWrite(client, number),
      () => this.#arrive(client),
      () => this.#lead(client, number),
      () => this.#passLarge(client),
      () => this.#writeGuarded(client, number),
    ];
  }

  /**
   * Takes the remaining large items. Every acknowledged item must be in the queue, unless it was done.
   * @throws Error otherwise
   */
  async requireLarge(client: Client): Promise<void> {
    const queue = client.queue<string>("large");
    while ((await queue.size(WITHIN)) > 0) await this.#takeLarge(client);
    const lost = [...this.#large.certain].filter((item) => !this.#large.done.has(item) && !this.#perhapsDone.has(item));
    if (lost.length > 0) throw new Error(`the large items ${lost.join(", ")} were added, and are lost`);
  }

  #enter(name: string, number: number, tenure: Tenure, room?: Room): void {
    const now = (): number => performance.now();
    this.#exclusive.enter(name, number, tenure, now, () => true, ...(room === undefined ? [] : [room]));
  }

  async #takePermits(client: Client, number: number): Promise<void> {
    const permits = 1 + this.#draw.below(PERMITS);
    const grant = await client.semaphore("seats", { permits: PERMITS }).acquire({ permits, ...WITHIN });
    try {
      this.#enter("the semaphore", number, grant, { permits, capacity: PERMITS });
      await sleep(this.#draw.between(...HOLDS_MS));
      this.#counts.permits += 1;
    } finally {
      await grant.release();
    }
  }

  async #readOrWrite(client: Client, number: number): Promise<void> {
    const lock = client.readWriteLock("page");
    const writes = this.#draw.below(3) === 0;
    const grant = writes ? await lock.write(WITHIN) : await lock.read(WITHIN);
    try {
      this.#enter("the read-write lock", number, grant, { permits: writes ? READERS : 1, capacity: READERS });
      await sleep(this.#draw.between(...HOLDS_MS));
      this.#counts[writes ? "writings" : "readings"] += 1;
    } finally {
      await grant.release();
    }
  }

  async #arrive(client: Client): Promise<void> {
    const generation = await client.barrier("start", { parties: PARTIES }).arrive(ARRIVES_WITHIN);
    const count = (this.#passed.get(generation) ?? 0) + 1;
    this.#passed.set(generation, count);
    this.#counts.passes += 1;
    if (count > PARTIES) throw new Error(`${count} have passed the barrier with ${generation}, ${PARTIES} may`);
  }

  async #lead(client: Client, number: number): Promise<void> {
    await client.election("leader").lead(async (leadership) => {
      this.#enter("the leadership", number, leadership);
      await sleep(this.#draw.between(...HOLDS_MS));
      this.#counts.leaderships += 1;
    });
  }

  /**
   * Passes large items through a queue. Each contains its own length, to detect partial items. No item may be done
   * twice.
   */
  async #passLarge(client: Client): Promise<void> {
    await sleep(LARGE_EVERY_MS);
    const queue = client.queue<string>("large");
    if ((await queue.size(WITHIN)) < MAX_LARGE) {
      this.#largeItems += 1;
      const length = Math.floor(this.#draw.between(...LARGE_CHARS));
      const name = `item-${this.#largeItems}`;
      this.#large.perhaps.add(name);
      await queue.add(`${name} ${length} ${"x".repeat(length)}`, WITHIN);
      this.#large.certain.add(name);
    }
    await this.#takeLarge(client);
  }

  async #takeLarge(client: Client): Promise<void> {
    const taken = await client.queue<string>("large").take({ timeoutMs: 5_000 }); // Finally, no client adds more.
    const [name = "", length, text = ""] = taken.item.split(" ");
    if (!this.#large.perhaps.has(name)) throw new Error(`${name} was taken, but no client added it`);
    if (Number(length) !== text.length) throw new Error(`an item of ${length} characters is read with ${text.length}`);
    this.#perhapsDone.add(name); // The call may not have been answered.
    await taken.done(WITHIN);
    if (this.#large.done.has(name)) throw new Error(`the large ${name} was done twice`);
    this.#large.done.add(name);
    this.#counts.large += 1;
  }

  /** Writes without checking whether the client still holds the lock. The resource has to check the token. */
  async #writeGuarded(client: Client, number: number): Promise<void> {
    const grant = await client.mutex("guarded").acquire(WITHIN);
    try {
      this.#resource.write(grant.token, number);
      await sleep(this.#draw.between(...HOLDS_MS));
    } finally {
      await grant.release();
    }
    await sleep(this.#draw.between(...LATE_MS));
    this.#resource.write(grant.token, number);
  }
}
