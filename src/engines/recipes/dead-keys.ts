/**
 * Keys that went with a session which has ended stay in the engine until somebody takes them away: who watches their map, who meets
 * them in a range, or the process that leased them as it leaves. Nobody is shown them meanwhile.
 */

import type { Platform } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import { behind, isForeseen, nextKey, type Store, type StoreEntry, type Write } from "../store.ts";
import { isKept, isLeaseKey, keptValue, leasedKey, leaseKey, mapPrefix } from "./keyspace.ts";
import { fewAtOnce } from "./pacing.ts";

/** Leases of one map that are looked at in one round; the next one takes those behind. */
const LEASES_AT_ONCE = 1_000;
/** Keys that one change takes away, where the engine takes so many. */
const CLEARED_AT_ONCE = 32;
/** Keys of its own that a process takes away as it leaves, and for how long it does. Others are left to those who meet them. */
const MAX_OWN = 1_000;
const LEAVING_MS = 1_000;

export class DeadKeys {
  readonly #store: Store;
  readonly #timers: Platform["timers"];
  readonly #own = new Set<string>();
  #isClearing = false;

  constructor(store: Store, timers: Platform["timers"]) {
    this.#store = store;
    this.#timers = timers;
  }

  /** What this process writes, before it is. */
  note(writes: readonly Write[]): void {
    for (const { key, value } of writes) {
      if (value === null) this.#own.delete(key);
      else if (isLeaseKey(key) && this.#own.size < MAX_OWN) this.#own.add(leasedKey(key));
    }
  }

  /**
   * One round over the leases of a map. A failure is left to the next time.
   * @param from where the last round has ended; null: at the first lease. @returns the same for the next one.
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
      // What others have put there stays.
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
   * Takes away keys whose sessions have ended, as they were read; those that were written since stay. A lease is written with its key,
   * so where the key is as it was read, so is its lease. A failure is left to the next who meets them.
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

  /** What this process has leased, once its session has ended. */
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
