/**
 * Detects chatter: message types with a steady rate, such as heartbeats or lease renewals, which would otherwise hide
 * all other messages. A protocol's other messages come in bursts. When the rhythm breaks, for example after the leader
 * crashes, the type is shown again until it has been steady for a while.
 */
import type { Name } from "../../../src/trace/log.ts";

/** A type becomes chatter after it has been steady for this many seconds. */
const SECONDS = 5;
/** Tolerances between consecutive two-second counts of a steady type. A count may have one beat more or less. */
const UNEVEN_FACTOR = 1.6;
const UNEVEN_BY = 2;
/** The rate of existing chatter may vary by this factor, because a busy machine sends unevenly. */
const BROKEN_FACTOR = 3;

interface Tally {
  /** The count in the current second. The next field is the count in the previous second. */
  count: number;
  countBefore: number;
  evenSeconds: number;
  isBorn: boolean;
}

/** A change in a type's status: it becomes chatter or stops being chatter. */
export interface Turn {
  readonly full: string;
  readonly since: number;
  readonly isChatter: boolean;
}

export class Chatter {
  /** The types that are chatter, with the time when each became chatter. */
  readonly #chatty = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();
  readonly #leastPerSecond: number;
  readonly #bornChatty: ReadonlySet<string>;
  #second = -Infinity;

  /** @param bornChatty parts whose messages are always chatter, such as a failure detector */
  constructor(leastPerSecond: number, bornChatty: readonly string[] = []) {
    this.#leastPerSecond = leastPerSecond;
    this.#bornChatty = new Set(bornChatty);
  }

  /** Returns whether a message of this type, sent at `at` ms, is chatter as far as is known. */
  has(fullName: string, at: number): boolean {
    return at >= (this.#chatty.get(fullName) ?? Infinity);
  }

  /** Counts one message at `at` ms. Returns the types that became chatter or stopped being chatter. */
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

  /** Returns how the status of one type changes at the end of a second, or null if it does not change. */
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
