/**
 * Calls that require a leader. They carry the metadata `hasleader: true`, which etcd's client sends for
 * WithRequireLeader. They are refused if this member knows of no leader. If it has known of none for a while, streams
 * end too, so that their clients move to a different member.
 */
import type { Timer } from "../../runtime/platform/platform.ts";
import type { Service } from "../services/state/service.ts";
import { EtcdError } from "./errors.ts";

/** Longer than an election usually takes, so a change of leader does not end streams. */
const NO_LEADER_MS = 1_000;

type End = (error: EtcdError) => void;

/** Refuses calls that require a leader while there is none, and ends their streams. */
export class Leadership {
  readonly #service: Service & { readonly leader: number | null };
  readonly #streams = new Set<End>();
  #timer: Timer | null = null;
  readonly #forget: () => void;

  constructor(service: Service & { readonly leader: number | null }) {
    this.#service = service;
    this.#forget = service.listen((event) => {
      if (event.type === "led") this.#led(event.leader);
    });
    this.#led(service.leader);
  }

  /** @throws EtcdError `noLeader` */
  require(): void {
    if (this.#service.leader === null) throw new EtcdError("noLeader");
  }

  /**
   * Calls `end` when there has been no leader for a second.
   * @returns a function that stops this
   */
  follow(end: End): () => void {
    this.#streams.add(end);
    return () => void this.#streams.delete(end);
  }

  close(): void {
    this.#forget();
    this.#led(this.#service.self);
    this.#streams.clear();
  }

  #led(leader: number | null): void {
    const { timers } = this.#service.platform;
    if (this.#timer !== null) timers.cancel(this.#timer);
    this.#timer = null;
    if (leader !== null) return;
    this.#timer = timers.after(NO_LEADER_MS, () => {
      for (const end of [...this.#streams]) end(new EtcdError("noLeader"));
    });
    this.#timer.unref();
  }
}
