/**
 * Callers of open requests, by request number. Numbers are assigned consecutively.
 *
 * It is not just a Map. With very many requests a Map rehashes all the time, and its old tables keep everything reachable from
 * them alive until the next full garbage collection.
 */
export class OpenRequests<W extends object | null> {
  /** The callers of the latest numbers. Undefined once answered. */
  #recent: (W | undefined)[] = [];
  /** How many entries at the front of `#recent` are answered. */
  #over = 0;
  /** Requests that are still open although very many newer ones have been made. */
  readonly #old = new Map<number, W>();
  #next: number;

  constructor(readonly first: number) {
    this.#next = first;
  }

  /** The number of the next request. */
  get next(): number {
    return this.#next;
  }

  /** Assigns that number. @param by the caller; null if no caller waits */
  add(by: W): void {
    this.#recent.push(by);
    this.#next += 1;
    if (this.#recent.length - this.#over > MOST) this.#age();
  }

  has(request: number): boolean {
    return this.#recent[this.#placeOf(request)] !== undefined || this.#old.has(request);
  }

  /** Marks the request as answered. @returns its caller; undefined if it was not open */
  take(request: number): W | undefined {
    const place = this.#placeOf(request);
    const found = this.#recent[place];
    if (found === undefined) return this.#takeOld(request);
    this.#recent[place] = undefined;
    this.#forget();
    return found;
  }

  /** Removes and returns all callers, so that no request is open. */
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

  /** Drops answered entries at the front, once there are many. */
  #forget(): void {
    const recent = this.#recent;
    while (this.#over < recent.length && recent[this.#over] === undefined) this.#over += 1;
    if (this.#over < MOST) return;
    recent.splice(0, this.#over);
    this.#over = 0;
  }
}

const MOST = 1_024;
