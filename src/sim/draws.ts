/**
 * The random draws of a run, stored by occasion: the third time that node 1 sets its timer `election`, the fifth message from 0
 * to 2. A run that branches off another one draws the same values on the same occasions, and fresh values on others.
 */
import { type Random, random } from "../core/random.ts";

export class Draws {
  /** The progress of the run: the number of entries in its trace. */
  readonly #place: () => number;
  /** The draws of the other run, by purpose and occasion. */
  readonly #remembered: ReadonlyMap<string, readonly number[]>;
  readonly #drawn = new Map<string, number[]>();
  /** The places at which each kind of occasion occurred. */
  readonly #occasions = new Map<string, number[]>();
  /** The due times of timers and messages, with the place at which each was set. */
  readonly #due = new Map<string, { readonly place: number; readonly at: number }[]>();
  #occasion = "";
  /**
   * Names the fresh draws after the branch, so that they do not repeat the first draws of the other run. Null without a branch.
   */
  readonly #branch: string | null;

  /** @param from the run to branch off, and how many entries of its trace this run shares */
  constructor(place: () => number, from?: { readonly draws: Draws; readonly entries: number }) {
    this.#place = place;
    this.#branch = from === undefined ? null : `after ${from.entries}`;
    this.#remembered = from === undefined ? new Map() : new Map([...from.draws.#remembered, ...from.draws.#drawn]);
    if (from === undefined) return;
    for (const [kind, places] of from.draws.#occasions)
      this.#occasions.set(
        kind,
        places.filter((each) => each <= from.entries),
      );
  }

  /** Starts the next occasion of that kind. Later draws belong to it. */
  next(kind: string): void {
    const places = this.#occasions.get(kind) ?? [];
    places.push(this.#place());
    this.#occasions.set(kind, places);
    this.#occasion = `${kind} ${places.length}`;
  }

  /** Draws for that purpose: remembered values if the occasion has any, otherwise from `source`. */
  over(purpose: string, source: Random): Random {
    const fresh = this.#branch === null ? source : source.stream(this.#branch);
    return random(0, () => {
      const key = `${purpose}: ${this.#occasion}`;
      const drawn = this.#drawn.get(key) ?? [];
      const bits = this.#remembered.get(key)?.[drawn.length] ?? fresh.bits();
      drawn.push(bits);
      this.#drawn.set(key, drawn);
      return bits;
    });
  }

  /** Notes when a timer will fire (unless it is set again) or a message will arrive. Each has a name. */
  due(name: string, at: number): void {
    const all = this.#due.get(name) ?? [];
    all.push({ place: this.#place(), at });
    this.#due.set(name, all);
  }

  /** The due times as of that number of entries. A duplicated message has two, in order. */
  dueAfter(name: string, entries: number): number[] {
    return (this.#due.get(name) ?? []).flatMap(({ place, at }) => (place <= entries ? [at] : []));
  }
}
