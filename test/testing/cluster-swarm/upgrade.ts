/** Upgrades members to another release one by one, while everything else continues. */
import { random } from "../../../src/core/random.ts";
import type { World } from "../../../src/testing/index.ts";
import type { Release } from "../../../src/testing/release.ts";

export const releaseNamed = async (name: string): Promise<Release> =>
  (
    (await import(/* @vite-ignore */ `../../../src/testing/release.ts?release=${name}`)) as {
      release: Release;
    }
  ).release;

/** Each member runs the earlier release until its turn. Then it is killed and starts with the next release from then on. */
export class Upgrade {
  readonly #before: Release;
  readonly #next: Release | null;
  readonly #seed: number;
  readonly #upgraded = new Set<number>();

  constructor(
    before: Release,
    /** Null: no member is upgraded. */
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

  /** Upgrades members that joined meanwhile. Two halves with different releases do not form a majority. */
  finish(world: World): void {
    if (this.#next === null) return;
    for (const id of world.members) if (!this.#upgraded.has(id)) this.#upgrade(world, id);
  }

  #upgrade(world: World, id: number): void {
    this.#upgraded.add(id);
    world.kill(id); // It may be about to join with the earlier release.
    void world.restart(id).catch(() => {}); // Its disk may be full, or it may have been removed.
  }
}
