/** Upgrades members to a different release one by one, while everything else continues. */
import { random } from "../../../src/core/random.ts";
import type { World } from "../../../src/testing/index.ts";
import type { Release } from "../../../src/testing/release.ts";

export const releaseNamed = async (name: string): Promise<Release> =>
  (
    (await import(/* @vite-ignore */ `../../../src/testing/release.ts?release=${name}`)) as {
      release: Release;
    }
  ).release;

/**
 * Assigns a release to each member: the earlier one until it is the member's turn; then the member is killed and
 * restarted with the next one.
 */
export class Upgrade {
  readonly #before: Release;
  readonly #next: Release | null;
  readonly #seed: number;
  readonly #upgraded = new Set<number>();

  constructor(
    before: Release,
    /** Null if no member is to be upgraded. */
    next: Release | null,
    seed: number,
  ) {
    this.#before = before;
    this.#next = next;
    this.#seed = seed;
  }

  readonly releaseOf = (id: number): Release =>
    this.#next !== null && this.#upgraded.has(id) ? this.#next : this.#before;

  get count(): number {
    return this.#upgraded.size;
  }

  async run(world: World, forMs: number): Promise<void> {
    if (this.#next === null) return;
    const chance = random(this.#seed).stream("upgrade");
    const rest = [...world.members];
    const atMostMs = (2 * forMs) / rest.length;
    while (rest.length > 0) {
      await world.sleep(chance.between(0, atMostMs));
      const [id] = rest.splice(chance.below(rest.length), 1) as [number];
      this.#upgrade(world, id);
    }
  }

  /**
   * Upgrades members that joined during the upgrade. If each half were running a different release, neither would be a
   * majority.
   */
  finish(world: World): void {
    if (this.#next === null) return;
    for (const id of world.members) if (!this.#upgraded.has(id)) this.#upgrade(world, id);
  }

  #upgrade(world: World, id: number): void {
    this.#upgraded.add(id);
    world.kill(id); // The member may be about to join with the earlier release.
    void world.restart(id).catch(() => {}); // The member's disk may be full, or it may have been removed.
  }
}
