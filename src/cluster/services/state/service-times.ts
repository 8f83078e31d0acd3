/** Durations and leader changes of the replicated service, for metrics. */
import type { NodeId } from "../../../core/protocol.ts";
import { type LogCounts, measure } from "../../../runtime/metrics.ts";
import type { Platform } from "../../../runtime/platform/platform.ts";

/** The most clients with pending commands: one that moves to another member is never answered here. */
const MAX_CLIENTS = 1_000;

export class ServiceTimes {
  readonly #clock: Pick<Platform["clock"], "now">;
  readonly #counts: LogCounts;
  /** When the oldest pending command of each client was proposed. */
  readonly #proposed = new Map<NodeId, number>();
  #stepBegan = 0;
  #snapshot = 0;
  #written = 0;
  #led: { readonly leader: NodeId; readonly term: number } | null = null;

  constructor(clock: Pick<Platform["clock"], "now">, counts: LogCounts) {
    this.#clock = clock;
    this.#counts = counts;
  }

  proposed(client: NodeId): void {
    if (this.#proposed.has(client)) return;
    const [oldest] = this.#proposed.keys();
    if (this.#proposed.size >= MAX_CLIENTS && oldest !== undefined) this.#proposed.delete(oldest);
    this.#proposed.set(client, this.#clock.now());
  }

  answered(client: NodeId): void {
    const at = this.#proposed.get(client);
    if (at === undefined) return;
    this.#proposed.delete(client);
    measure(this.#counts.committing, this.#clock.now() - at);
  }

  led({ leader, term }: { readonly leader: NodeId | null; readonly term: number }): void {
    if (leader === null || (this.#led?.leader === leader && this.#led.term === term)) return;
    this.#led = { leader, term };
    this.#counts.leaderChanges += 1;
  }

  stepBegins(): void {
    this.#stepBegan = this.#clock.now();
  }

  /**
   * @param snapshot the index of the last entry that the latest snapshot covers.
   * @param written how many characters of the next one are written.
   */
  stepEnds(snapshot: number, written: number): void {
    if (snapshot === this.#snapshot && written === this.#written) return;
    this.#snapshot = snapshot;
    this.#written = written;
    measure(this.#counts.snapshots, this.#clock.now() - this.#stepBegan);
  }
}
