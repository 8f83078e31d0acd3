/**
 * Who waits for what is to be answered, by the numbers of the requests, which are given one after the other.
 *
 * Not a Map alone: where very many come and go it is laid out anew all the time, and what was in the old tables is kept by these, with all
 * that can be reached from there, until the next full collection.
 */
export class OpenRequests<W extends object | null> {
  /** Of the last numbers; undefined: it has been answered. */
  #recent: (W | undefined)[] = [];
  /** How many at the front of these are over. */
  #over = 0;
  /** What has been open for so long that very many others have come since. */
  readonly #old = new Map<number, W>();
  #next: number;

  constructor(readonly first: number) {
    this.#next = first;
  }

  /** The number of the next request. */
  get next(): number {
    return this.#next;
  }

  /** Gives that number away. @param by who waits; null: nobody */
  add(by: W): void {
    this.#recent.push(by);
    this.#next += 1;
    if (this.#recent.length - this.#over > MOST) this.#age();
  }

  has(request: number): boolean {
    return this.#recent[this.#placeOf(request)] !== undefined || this.#old.has(request);
  }

  /** It is answered. @returns who waited for it; undefined where it was not open */
  take(request: number): W | undefined {
    const place = this.#placeOf(request);
    const found = this.#recent[place];
    if (found === undefined) return this.#takeOld(request);
    this.#recent[place] = undefined;
    this.#forget();
    return found;
  }

  /** All of them: from now on none is open. */
  takeAll(): W[] {
    const all = [...this.#old.values(), ...this.#recent.filter((by) => by !== undefined)];
    this.#recent = [];
    this.#over = 0;
    this.#old.clear();
    return all;
  }

  #takeOld(request: number): W | undefined {
    const found = this.#old.get(request);
    this.#old.delete(request);
    return found;
  }

  #placeOf(request: number): number {
    return this.#recent.length - (this.#next - request);
  }

  #age(): void {
    const by = this.#recent[this.#over];
    if (by !== undefined) this.#old.set(this.#next - this.#recent.length + this.#over, by);
    this.#recent[this.#over] = undefined;
    this.#forget();
  }

  /** What is over at the front, once there is much of it. */
  #forget(): void {
    const recent = this.#recent;
    while (this.#over < recent.length && recent[this.#over] === undefined) this.#over += 1;
    if (this.#over < MOST) return;
    recent.splice(0, this.#over);
    this.#over = 0;
  }
}

const MOST = 1_024;
