/**
 * Chatter is a message type with a steady rate, such as heartbeats or lease renewals, which would bury all other messages.
 * A protocol's other messages come in bursts. When the rhythm breaks, as after a crash of the leader that renewed, the type
 * is shown again until it has been steady for a while.
 */
import type { Name } from "../../../src/trace/log.ts";

/** A type becomes chatter after this many steady seconds. */
const SECONDS = 5;
/** Consecutive two-second counts are steady within this factor and difference: a count may have one beat more or less. */
const UNEVEN_FACTOR = 1.6;
const UNEVEN_BY = 2;
/** Existing chatter may vary by this factor, since a busy machine beats unevenly too. */
const BROKEN_FACTOR = 3;

interface Tally {
  /** In the current second, and in the previous one. */
  count: number;
  countBefore: number;
  evenSeconds: number;
  isBorn: boolean;
}

/** A type becomes chatter, or stops being chatter, at a moment. */
export interface Turn {
  readonly full: string;
  readonly since: number;
  readonly isChatter: boolean;
}

export class Chatter {
  /** Chatter types, with the moment since which they are. */
  readonly #chatty = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();
  readonly #leastPerSecond: number;
  readonly #bornChatty: ReadonlySet<string>;
  #second = -Infinity;

  /** @param bornChatty parts whose messages are chatter from the first one on, such as a failure detector */
  constructor(leastPerSecond: number, bornChatty: readonly string[] = []) {
    this.#leastPerSecond = leastPerSecond;
    this.#bornChatty = new Set(bornChatty);
  }

  /** Whether a message of this type at `at` ms is chatter, as far as is known now. */
  has(fullName: string, at: number): boolean {
    return at >= (this.#chatty.get(fullName) ?? Infinity);
  }

  /** Counts one message at `at` ms. Returns the types that became chatter, or stopped being chatter. */
  hear({ full, part }: Name, at: number): readonly Turn[] {
    const second = Math.floor(at / 1_000);
    const turns = second > this.#second ? this.#turnTo(second) : [];
    let tally = this.#tallies.get(full);
    if (tally === undefined) {
      tally = { count: 0, countBefore: 0, evenSeconds: 0, isBorn: part !== null && this.#bornChatty.has(part) };
      this.#tallies.set(full, tally);
      if (tally.isBorn) this.#chatty.set(full, -Infinity);
    }
    tally.count += 1;
    return turns;
  }

  #turnTo(second: number): Turn[] {
    const turns: Turn[] = [];
    const isNext = second === this.#second + 1;
    for (const [full, tally] of this.#tallies) {
      const turn = tally.isBorn ? null : this.#turnOf(full, tally, isNext);
      if (turn !== null) turns.push(turn);
      tally.countBefore = isNext ? tally.count : 0;
      tally.count = 0;
    }
    this.#second = second;
    return turns;
  }

  /** At the end of a second: whether one type changes. */
  #turnOf(full: string, tally: Tally, isNext: boolean): Turn | null {
    const { count, countBefore } = tally;
    const isFrequent = count >= this.#leastPerSecond;
    if (this.#chatty.has(full)) {
      if (isFrequent && isNext && isWithin(BROKEN_FACTOR, count, countBefore)) return null;
      this.#chatty.delete(full);
      tally.evenSeconds = 0;
      return { full, since: this.#second * 1_000, isChatter: false };
    }
    const isEven = isFrequent && isNext && isWithin(UNEVEN_FACTOR, count, countBefore);
    tally.evenSeconds = isEven ? tally.evenSeconds + 1 : 0;
    if (tally.evenSeconds < SECONDS) return null;
    const since = (this.#second - tally.evenSeconds) * 1_000;
    this.#chatty.set(full, since);
    return { full, since, isChatter: true };
  }
}

function isWithin(factor: number, a: number, b: number): boolean {
  return Math.max(a, b) <= Math.min(a, b) * factor + UNEVEN_BY;
}
