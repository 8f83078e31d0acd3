/** What can be held, and lost: a lock, a permit, an item of a queue, leadership. */

/**
 * Something that is this member's alone until it is lost: a lock, or leadership. Code that relies on it looks at
 * `signal` before each act, and passes `token` to what it acts on.
 */
export interface Tenure {
  /** Grows from one tenure of the name to the next, over all members. A resource that remembers the highest rejects stale ones. */
  readonly token: number;
  /** Aborted the moment it is no longer certain that nobody else has it; the reason is a `CoordinationError`. */
  readonly signal: AbortSignal;
  /** Whether it is certain at this very moment, which is asked of the clock as well. */
  readonly isHeld: boolean;
  /** Until when it is certain if nothing more is heard, on the scale of `performance.now()`; null before it is first confirmed. */
  readonly deadline: number | null;
  /**
   * Calls the listener with each new `deadline`, with the present one at once, until what is returned is called. What it throws is an
   * uncaught error, as with listeners of `signal`.
   */
  onDeadline(listener: (deadline: number) => void): () => void;
}

export interface AcquireOptions {
  /**
   * How long to wait at most. Default: as long as it takes. 0 is refused: whether a lock is free is known to others, so that
   * a try without waiting could not succeed.
   */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the wait ends. It does not touch a grant that has been given. */
  readonly signal?: AbortSignal | undefined;
}

/** A lock that is held. `await using` releases it. */
export interface Grant extends Tenure, AsyncDisposable {
  readonly name: string;
  /** Gives the lock back, this grant and no other. Twice is once; after a loss it does nothing. */
  release(): Promise<void>;
}
