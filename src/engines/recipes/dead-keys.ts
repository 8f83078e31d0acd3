/**
 * Removes keys whose session has ended. The engine keeps such a key until it is removed by a process that watches its
 * map, one that finds it in a range, or the one that leased it, when that process leaves. Until then, reads skip it.
 */

import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import { behind, isForeseen, nextKey, type Store, type StoreEntry, type Write } from "../store.ts";
import { isKept, isLeaseKey, keptValue, leasedKey, leaseKey, mapPrefix } from "./keyspace.ts";
import { fewAtOnce } from "./pacing.ts";

/** How many of a map's leases are examined in one round. The next round continues where this one ended. */
const LEASES_AT_ONCE = 1_000;
/** How many keys are removed in one commit, if the engine accepts that many. */
const CLEARED_AT_ONCE = 32;
/**
 * The maximum number of its own keys that a leaving process removes, and the time limit for this. Other processes
 * remove the rest when they find it.
 */
const MAX_OWN = 1_000;
const LEAVING_MS = 1_000;

/** Finds and removes keys of ended sessions. */
export class DeadKeys {
  readonly #store: Store;
  readonly #timers: Platform["timers"];
  readonly #own = new Set<string>();
  #isClearing = false;

  constructor(store: Store, timers: Platform["timers"]) {
    this.#store = store;
    this.#timers = timers;
  }

  /** Call this before writes are committed. */
  note(writes: readonly Write[]): void {
    for (const { key, value } of writes) {
      if (value === null) this.#own.delete(key);
      else if (isLeaseKey(key) && this.#own.size < MAX_OWN) this.#own.add(leasedKey(key));
    }
  }

  /**
   * Examines some of a map's leases. After a failure, the next round retries.
   * @param from where the last round ended, or null to start with the first lease
   * @returns where this round ended, to be passed as `from` in the next round
   */
  async sweep(map: string, from: string | null): Promise<string | null> {
    const store = this.#store;
    const first = leaseKey(mapPrefix(map));
    const { entries, isMore } = await store.range({ from: from ?? first, to: behind(first), limit: LEASES_AT_ONCE });
    const sessions = entries.map(({ value }) => Number(value)).filter(Number.isSafeInteger);
    const living = await store.living([...new Set(sessions)]);
    for (const lease of entries) {
      if (living.has(Number(lease.value))) continue;
      const key = leasedKey(lease.key);
      const entry = await store.get(key);
      // A key that has been replaced by another session or writer is not removed.
      const isItsOwn = entry !== null && isKept(entry) && keptValue(entry).session === Number(lease.value);
      const gone: Write[] = [{ key: lease.key, value: null }, ...(isItsOwn ? [{ key, value: null }] : [])];
      const checks = [
        { key: lease.key, revision: lease.revision },
        { key, revision: entry?.revision ?? 0 },
      ];
      await store.commit(checks, gone);
    }
    const last = entries.at(-1);
    return isMore && last !== undefined ? nextKey(last.key) : null;
  }

  /**
   * Removes keys whose sessions have ended, unless they have been written since they were read. A lease is written
   * together with its key, so if the key is unchanged, its lease is, too. After a failure, the next process that finds
   * them retries.
   */
  async clear(entries: readonly StoreEntry[]): Promise<void> {
    if (entries.length === 0 || this.#isClearing) return;
    this.#isClearing = true;
    try {
      const atOnce = Math.max(1, Math.min(CLEARED_AT_ONCE, Math.floor(this.#store.maxKeys / 2)));
      for (let at = 0; at < entries.length; at += atOnce) {
        const some = entries.slice(at, at + atOnce);
        const gone = some.flatMap(({ key }) => [key, leaseKey(key)].map((each) => ({ key: each, value: null })));
        await this.#store.commit(some, gone);
      }
    } catch (error) {
      if (!isForeseen(error)) throw error;
    } finally {
      this.#isClearing = false;
    }
  }

  /** Removes the keys that this process leased. Call this once its session has ended. */
  async leave(): Promise<void> {
    if (this.#own.size === 0) return;
    await Promise.race([this.#clearOwn(), sleep(this.#timers, LEAVING_MS, { ref: false })]);
  }

  async #clearOwn(): Promise<void> {
    try {
      const found: StoreEntry[] = [];
      await fewAtOnce([...this.#own], async (key) => {
        const entry = await this.#store.get(key);
        if (entry !== null && isKept(entry) && keptValue(entry).session !== 0) found.push(entry);
      });
      const living = await this.#store.living([...new Set(found.map((entry) => keptValue(entry).session))]);
      await this.clear(found.filter((entry) => !living.has(keptValue(entry).session)));
    } catch (error) {
      if (!isForeseen(error)) throw error;
    }
  }
}
