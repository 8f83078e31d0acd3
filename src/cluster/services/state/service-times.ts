/** Measures the replicated service's durations, and counts its leader changes, for metrics. */
import type { NodeId } from "../../../core/protocol.ts";
import { type LogCounts, measure } from "../../../runtime/metrics.ts";
import type { Platform } from "../../../runtime/platform/platform.ts";

/**
 * The maximum number of clients with pending commands. A client that moves to a different member is never answered at
 * this one.
 */
const MAX_CLIENTS = 1_000;

export class ServiceTimes {
  readonly #clock: Pick<Platform["clock"], "now">;
  readonly #counts: LogCounts;
  /** For each client, when its oldest pending command was proposed. */
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
   * Called at the end of each step.
   * @param snapshot the index of the last entry that the latest snapshot covers
   * @param written the number of characters of the next snapshot that have been written
   */
  stepEnds(snapshot: number, written: number): void {
    if (snapshot === this.#snapshot && written === this.#written) return;
    this.#snapshot = snapshot;
    this.#written = written;
    measure(this.#counts.snapshots, this.#clock.now() - this.#stepBegan);
  }
}
