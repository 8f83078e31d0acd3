/** Maps that are watched in this process: their changes are asked for when the engine hints at one, and every now and then. */
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
  /** `restored`: there may have been changes that are not remembered. */
  tell(event: ServiceEvent | { readonly type: "restored"; readonly revision: number }): void;
}

interface Followed {
  times: number;
  /** Changes up to here have been told; null before anybody has said from where on. */
  after: number | null;
  beginning: Promise<void> | null;
  /** Where the next round over its leases begins; null: at the first one. */
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

  /** Who asks goes on with what is told behind the answer: so from where on that is is known before it is asked. */
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

  /** The engine was restored: each map begins with the next watch, as watches that there were have ended. */
  restart(): void {
    for (const followed of this.#followed.values()) {
      followed.after = null;
      followed.sweepFrom = null;
    }
  }

  /** A failure is left to the next look. */
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
      // What others have put there ends each watch of the map: they ask for it, and are told so.
      followed.after = null;
      tell({ type: "restored", revision: 0 });
      throw error;
    }
  }
}
