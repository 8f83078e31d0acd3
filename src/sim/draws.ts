/**
 * The random draws of a run, stored by occasion: for example, the third time that node 1 sets its timer `election`, or
 * the fifth message from node 0 to node 2. A run that branches off from another run draws the same values on the same
 * occasions and new values on all others.
 */
import { type Random, random } from "../core/random.ts";

/** Records the draws of a run, and repeats the draws of another run. */
export class Draws {
  /** Returns the progress of the run: the number of entries in its trace. */
  readonly #place: () => number;
  /** The draws of the other run, keyed by purpose and occasion. */
  readonly #remembered: ReadonlyMap<string, readonly number[]>;
  readonly #drawn = new Map<string, number[]>();
  /** The positions in the trace at which each kind of occasion occurred. */
  readonly #occasions = new Map<string, number[]>();
  /** The due times of timers and messages, with the position in the trace at which each was set. */
  readonly #due = new Map<string, { readonly place: number; readonly at: number }[]>();
  #occasion = "";
  /**
   * The name of the random stream for draws after the branch, so that they do not repeat the first draws of the other
   * run. Null without a branch.
   */
  readonly #branch: string | null;

  /** @param from the run to branch off from, and the number of trace entries that this run shares with it */
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

  /** Starts the next occasion of the given kind. Later draws belong to it. */
  next(kind: string): void {
    const places = this.#occasions.get(kind) ?? [];
    places.push(this.#place());
    this.#occasions.set(kind, places);
    this.#occasion = `${kind} ${places.length}`;
  }

  /** Returns the source of draws for a purpose: the remembered values if the occasion has any, otherwise `source`. */
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

  /** Records when the named timer will fire (unless it is set again) or the named message will arrive. */
  due(name: string, at: number): void {
    const all = this.#due.get(name) ?? [];
    all.push({ place: this.#place(), at });
    this.#due.set(name, all);
  }

  /** Returns the due times that had been set after that number of entries. A duplicated message has two, in order. */
  dueAfter(name: string, entries: number): number[] {
    return (this.#due.get(name) ?? []).flatMap(({ place, at }) => (place <= entries ? [at] : []));
  }
}
