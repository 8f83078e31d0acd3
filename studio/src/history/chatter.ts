/**
 * Chatter is what is said so steadily that it would bury the rest, such as heartbeats: second after second at the same
 * rate, and more of it than of everything else together. A protocol's own messages come in bursts, however large or
 * many, as they do while the network drops and delays them.
 */
import type { Name } from "../../../src/trace/naming.ts";

const SECONDS = 20;
const PER_SECOND = 8;
/** From one second to the next, the rate of chatter changes by no more than this factor. */
const UNSTEADY = 1.6;

/** Failure detectors chatter by profession: they are folded from their first word on. */
const BORN_CHATTY = new Set(["detector"]);

interface Tally {
  /** In the present second, and in the one before. */
  count: number;
  countBefore: number;
  steadySeconds: number;
}

export class Chatter {
  readonly #chatty = new Set<string>();
  readonly #tallies = new Map<string, Tally>();
  #second = -Infinity;

  has(fullName: string): boolean {
    return this.#chatty.has(fullName);
  }

  /** Counts one saying at `at` ms. If it shows that its name has become chatter: the moment since when; else null. */
  hear({ full, part }: Name, at: number): number | null {
    if (part !== null && BORN_CHATTY.has(part)) this.#chatty.add(full);
    const second = Math.floor(at / 1_000);
    if (second > this.#second) this.#turnTo(second);
    const tally = this.#tallies.get(full) ?? { count: 0, countBefore: 0, steadySeconds: 0 };
    tally.count += 1;
    this.#tallies.set(full, tally);
    if (tally.steadySeconds < SECONDS || this.#chatty.has(full)) return null;
    this.#chatty.add(full);
    return (this.#second - tally.steadySeconds) * 1_000;
  }

  #turnTo(second: number): void {
    const total = [...this.#tallies.values()].reduce((sum, { count }) => sum + count, 0);
    for (const tally of this.#tallies.values()) {
      const { count, countBefore } = tally;
      const isFrequent = count >= PER_SECOND && count * 2 > total;
      const isEven = count <= countBefore * UNSTEADY && countBefore <= count * UNSTEADY;
      tally.steadySeconds = isFrequent && isEven && second === this.#second + 1 ? tally.steadySeconds + 1 : 0;
      tally.countBefore = count;
      tally.count = 0;
    }
    this.#second = second;
  }
}
