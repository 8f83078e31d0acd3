/**
 * Chatter is what is said so evenly that it would bury the rest, such as heartbeats, and renewals with their
 * confirmations: second after second at the same rate. A protocol's own messages come in bursts. When the rhythm breaks,
 * as when the leader that renewed has crashed, what is said is worth seeing again, until it is even for a while.
 */
import type { Name } from "../../../src/trace/log.ts";

/** So many even seconds make chatter. */
const SECONDS = 5;
/** Counts of two seconds in a row are even within this factor and this difference: one of them may begin between two beats. */
const UNEVEN_FACTOR = 1.6;
const UNEVEN_BY = 2;
/** What is chatter already stays so within this factor: a busy machine beats unevenly, too. */
const BROKEN_FACTOR = 3;

interface Tally {
  /** In the present second, and in the one before. */
  count: number;
  countBefore: number;
  evenSeconds: number;
  isBorn: boolean;
}

/** A name that has become chatter, or is none any more, from a moment on. */
export interface Turn {
  readonly full: string;
  readonly since: number;
  readonly isChatter: boolean;
}

export class Chatter {
  /** Since when. */
  readonly #chatty = new Map<string, number>();
  readonly #tallies = new Map<string, Tally>();
  readonly #leastPerSecond: number;
  readonly #bornChatty: ReadonlySet<string>;
  #second = -Infinity;

  /** @param bornChatty Parts that are folded from their first word on, such as a failure detector. */
  constructor(leastPerSecond: number, bornChatty: readonly string[] = []) {
    this.#leastPerSecond = leastPerSecond;
    this.#bornChatty = new Set(bornChatty);
  }

  /** Whether what is said at `at` ms under that name is chatter, as far as is known now. */
  has(fullName: string, at: number): boolean {
    return at >= (this.#chatty.get(fullName) ?? Infinity);
  }

  /** Counts one saying at `at` ms. Returns what turns out to have become chatter, or to have ceased to be. */
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

  /** At the end of a second: what it makes of one name. */
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
