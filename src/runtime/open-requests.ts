/**
 * The callers of open requests, by request number. Numbers are assigned consecutively.
 *
 * This is not just a Map because, with a large number of requests, a Map keeps rehashing, and its old tables keep
 * everything reachable from them alive until the next full garbage collection.
 */
export class OpenRequests<W extends object | null> {
  /** The callers with the most recent numbers. The entry of an answered request is undefined. */
  #recent: (W | undefined)[] = [];
  /** The number of answered entries at the start of `#recent`. */
  #over = 0;
  /** Requests that are still open although a large number of newer ones have been made. */
  readonly #old = new Map<number, W>();
  #next: number;

  constructor(readonly first: number) {
    this.#next = first;
  }

  /** The number that the next request will get. */
  get next(): number {
    return this.#next;
  }

  /**
   * Assigns the next number to a request.
   * @param by the caller, or null if no caller is waiting
   */
  add(by: W): void {
    this.#recent.push(by);
    this.#next += 1;
    if (this.#recent.length - this.#over > MOST) this.#age();
  }

  has(request: number): boolean {
    return this.#recent[this.#placeOf(request)] !== undefined || this.#old.has(request);
  }

  /**
   * Marks the request as answered.
   * @returns its caller, or undefined if the request was not open
   */
  take(request: number): W | undefined {
    const place = this.#placeOf(request);
    const found = this.#recent[place];
    if (found === undefined) return this.#takeOld(request);
    this.#recent[place] = undefined;
    this.#forget();
    return found;
  }

  /** Removes and returns all callers, leaving no open requests. */
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

  /** Drops the answered entries at the start once there are many of them. */
  #forget(): void {
    const recent = this.#recent;
    while (this.#over < recent.length && recent[this.#over] === undefined) this.#over += 1;
    if (this.#over < MOST) return;
    recent.splice(0, this.#over);
    this.#over = 0;
  }
}

const MOST = 1_024;
