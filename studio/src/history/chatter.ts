/**
 * Chatter is what is said so steadily that it would bury the rest, such as heartbeats. A protocol's own messages come in
 * bursts, however large; chatter goes on second after second.
 */

const SECONDS = 5;
const PER_SECOND = 8;

/** Failure detectors chatter by profession: they are folded from their first word on. */
const BORN_CHATTY = new Set(["detector"]);

interface Tally {
  second: number;
  count: number;
  busySeconds: number;
}

export class Chatter {
  readonly #chatty = new Set<string>();
  readonly #tallies = new Map<string, Tally>();

  has(name: string): boolean {
    return this.#chatty.has(name);
  }

  /** Counts one saying of `name` at `at` ms. True if this very one shows that it is chatter. */
  hear(name: string, part: string | null, at: number): boolean {
    if (this.#chatty.has(name)) return false;
    if (part !== null && BORN_CHATTY.has(part)) return this.#admit(name);
    const second = Math.floor(at / 1_000);
    const tally = this.#tallies.get(name);
    if (tally === undefined) {
      this.#tallies.set(name, { second, count: 1, busySeconds: 0 });
      return false;
    }
    if (second > tally.second) {
      const steady = tally.count >= PER_SECOND && second === tally.second + 1;
      tally.busySeconds = steady ? tally.busySeconds + 1 : 0;
      tally.second = second;
      tally.count = 0;
    }
    tally.count += 1;
    return tally.busySeconds >= SECONDS && this.#admit(name);
  }

  #admit(name: string): true {
    this.#chatty.add(name);
    this.#tallies.delete(name);
    return true;
  }
}
