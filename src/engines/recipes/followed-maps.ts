/** The maps that this process watches. It reads their changes after each hint of the engine, and periodically. */
import type { Answer, ServiceEvent } from "../../protocols/service/coordination-service/operations.ts";
import { isForeseen, type Store } from "../store.ts";
import type { DeadKeys } from "./dead-keys.ts";
import { type Keys, shownChange } from "./keys.ts";
import { mapPrefix } from "./keyspace.ts";
import { fewAtOnce } from "./pacing.ts";

export interface FollowedMapsOptions {
  readonly store: Store;
  readonly keys: Keys;
  readonly dead: DeadKeys;
  /** `restored`: some changes may have been dropped before they were reported. */
  tell(event: ServiceEvent | { readonly type: "restored"; readonly revision: number }): void;
}

interface Followed {
  times: number;
  /** Changes up to this revision have been reported; null before the first `changes()`. */
  after: number | null;
  beginning: Promise<void> | null;
  /** The lease to begin the next round at; null: the first one. */
  sweepFrom: string | null;
}

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
   * The caller continues with changes reported after this answer. So the start of the reports is fixed before the map is
   * read.
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

  /** The engine was restored: existing watches have ended, and each map starts again with its next watch. */
  restart(): void {
    for (const followed of this.#followed.values()) {
      followed.after = null;
      followed.sweepFrom = null;
    }
  }

  /** The next round retries after a failure. */
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
    if (followed.after !== after) return; // The engine was restored meanwhile.
    followed.after = found === null ? null : found.revision;
    if (found === null) return tell({ type: "restored", revision: 0 });
    try {
      for (const change of found.changes) tell({ type: "changed", ...shownChange(map, prefix, change) });
    } catch (error) {
      // Another program wrote to the map: each of its watches reads the map, gets the error and ends.
      followed.after = null;
      tell({ type: "restored", revision: 0 });
      throw error;
    }
  }
}
