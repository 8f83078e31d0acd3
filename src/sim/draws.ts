/**
 * What a run draws by chance, kept by what it was drawn for: the third time that node 1 sets its timer `election`, the fifth
 * message from 0 to 2. A run that goes on from a point of another one draws alike on the same occasions, and anew on others.
 */
import { type Random, random } from "../core/random.ts";

export class Draws {
  /** How far the run has come: how many entries its trace has. */
  readonly #place: () => number;
  /** What was drawn in another run, by purpose and occasion. */
  readonly #remembered: ReadonlyMap<string, readonly number[]>;
  readonly #drawn = new Map<string, number[]>();
  /** At which places each kind of occasion came. */
  readonly #occasions = new Map<string, number[]>();
  /** When timers run out and messages arrive, and at which place that was settled. */
  readonly #due = new Map<string, { readonly place: number; readonly at: number }[]>();
  #occasion = "";
  /** Names what is drawn anew after the point that this run goes on from: not what the other drew first once more. */
  readonly #branch: string | null;

  /** @param from the run whose draws are remembered, of whose trace so many entries are the beginning of this one's */
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

  /** What is drawn next is for the next occasion of that kind. */
  next(kind: string): void {
    const places = this.#occasions.get(kind) ?? [];
    places.push(this.#place());
    this.#occasions.set(kind, places);
    this.#occasion = `${kind} ${places.length}`;
  }

  /** Draws for that purpose what is remembered of the occasion, and from `source` what is not. */
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

  /** A timer will run out then, unless it is set anew, or a message arrive: one name for each. */
  due(name: string, at: number): void {
    const all = this.#due.get(name) ?? [];
    all.push({ place: this.#place(), at });
    this.#due.set(name, all);
  }

  /** When it was due, as it stood after so many entries; of a message that comes twice, both times, in their order. */
  dueAfter(name: string, entries: number): number[] {
    return (this.#due.get(name) ?? []).flatMap(({ place, at }) => (place <= entries ? [at] : []));
  }
}
