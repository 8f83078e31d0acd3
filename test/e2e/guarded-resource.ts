/** A resource under a lock. It checks tokens, and a test checks the accepted writes independently. */
import { guard } from "../../src/index.ts";

export class GuardedResource {
  readonly counts = { taken: 0, stale: 0 };
  readonly #accept = guard();
  readonly #owners = new Map<number, number>();
  #highest = -1;

  /**
   * Writes with that token, from a client that may have lost the lock.
   * @throws Error if it accepts a stale write, or if two clients have the same token
   */
  write(token: number, client: number): void {
    const isStale = token < this.#highest;
    const isTaken = this.#takes(token);
    if (isTaken === isStale)
      throw new Error(
        `a write with token ${token} was ${isTaken ? "taken" : "refused"} after one with ${this.#highest}`,
      );
    this.counts[isTaken ? "taken" : "stale"] += 1;
    const owner = this.#owners.get(token) ?? client;
    if (owner !== client) throw new Error(`clients ${owner} and ${client} both have token ${token}`);
    this.#owners.set(token, client);
    this.#highest = Math.max(this.#highest, token);
  }

  #takes(token: number): boolean {
    try {
      this.#accept(token);
      return true;
    } catch (error) {
      if ((error as { code?: string }).code !== "stale-token") throw error;
      return false;
    }
  }
}
