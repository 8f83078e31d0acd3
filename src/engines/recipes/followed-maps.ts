/**
 * The maps that this process watches. It reads changes to them after each hint from the engine, and also periodically.
 */
import type { Told } from "../../cluster/services/state/service.ts";
import type { Answer } from "../../protocols/service/coordination-service/operations.ts";
import { isForeseen, type Store } from "../store.ts";
import type { DeadKeys } from "./dead-keys.ts";
import { type Keys, shownChange } from "./keys.ts";
import { mapPrefix } from "./keyspace.ts";
import { fewAtOnce } from "./pacing.ts";

export interface FollowedMapsOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly dead: DeadKeys;
  /** Reports an event. `restored` means that some changes may have been dropped before they could be reported. */
  tell(event: Told): void;
}

interface Followed {
  times: number;
  /** Changes up to this revision have been reported. Null before the first call to `changes()`. */
  after: number | null;
  beginning: Promise<void> | null;
  /** The lease at which the next round begins. Null: the first one. */
  sweepFrom: string | null;
}

/** Reports changes to watched maps in order. */
export class FollowedMaps {
  readonly #options: FollowedMapsOptions;
  readonly #followed = new Map<string, Followed>();

  constructor(options: FollowedMapsOptions) {
    this.#options = options;
  }

  get areFollowed(): boolean {
    return this.#followed.size > 0;
  }

  follow(map: string): () => void {
    const followed = this.#followed.get(map) ?? { times: 0, after: null, beginning: null, sweepFrom: null };
    followed.times += 1;
    this.#followed.set(map, followed);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      followed.times -= 1;
      if (followed.times === 0) this.#followed.delete(map);
    };
  }

  /**
   * Reads the changes after a revision. From then on, the caller relies on reported changes. The revision that reported
   * changes start from is therefore determined before the map is read, so that none are missed.
   */
  async changes(map: string, after: number): Promise<{ revision: number; answer: Answer & { type: "changes" } }> {
    const followed = this.#followed.get(map);
    if (followed !== undefined && followed.after === null) {
      followed.beginning ??= this.#begin(followed);
      await followed.beginning;
    }
    return this.#options.keys.changes(map, after);
  }

  async #begin(followed: Followed): Promise<void> {
    try {
      followed.after = await this.#options.store.revision();
    } finally {
      followed.beginning = null;
    }
  }

  /**
   * Call this when the engine was restored. All watches have ended by then, and each map starts over with its next
   * watch.
   */
  restart(): void {
    for (const followed of this.#followed.values()) {
      followed.after = null;
      followed.sweepFrom = null;
    }
  }

  /** Reports changes to the followed maps. After a failure, the next round retries. */
  async look(): Promise<void> {
    await fewAtOnce([...this.#followed], ([map, followed]) => this.#lookAt(map, followed));
  }

  async #lookAt(map: string, followed: Followed): Promise<void> {
    try {
      if (this.#options.store.maxKeys > 1) followed.sweepFrom = await this.#options.dead.sweep(map, followed.sweepFrom);
      if (followed.after !== null) await this.#tellChanges(map, followed, followed.after);
    } catch (error) {
      if (!isForeseen(error)) throw error;
    }
  }

  async #tellChanges(map: string, followed: Followed, after: number): Promise<void> {
    const { store, tell } = this.#options;
    const prefix = mapPrefix(map);
    const found = await store.changes(prefix, after);
    if (followed.after !== after) return; // The engine was restored in the meantime.
    followed.after = found === null ? null : found.revision;
    if (found === null) return tell({ type: "restored", revision: 0 });
    try {
      for (const change of found.changes) tell({ type: "changed", ...shownChange(map, prefix, change) });
    } catch (error) {
      // Another program wrote to the map. Each of the map's watches will read it, get the error and end.
      followed.after = null;
      tell({ type: "restored", revision: 0 });
      throw error;
    }
  }
}
