/** The API of things that a member holds and may lose: a lock, a permit, an item of a queue, leadership. */

/**
 * Something that this member holds exclusively until it is lost, such as a lock or leadership. Check `signal` before each
 * action that relies on it, and pass `token` to the resource.
 */
export interface Tenure {
  /**
   * Fencing token: grows from one tenure of the name to the next, over all members. A resource that remembers the highest
   * token rejects stale ones.
   */
  readonly token: number;
  /** Aborted as soon as another member might hold it. The reason is a `CoordinationError`. */
  readonly signal: AbortSignal;
  /** Whether this member certainly holds it now. Also reads the clock, so it is correct right after a pause. */
  readonly isHeld: boolean;
  /** When the tenure expires unless it is renewed, on the scale of `performance.now()`; null before it is first confirmed. */
  readonly deadline: number | null;
  /**
   * Calls the listener at once with the present `deadline`, and then with each new one. An error of the listener is an
   * uncaught error, as with listeners of `signal`.
   *
   * @returns a function that removes the listener
   */
  onDeadline(listener: (deadline: number) => void): () => void;
}

/** Options of `Mutex.acquire()` and similar calls. */
export interface AcquireOptions {
  /**
   * How long to wait at most, above 0: other members know whether a lock is free, so a call that does not wait could not
   * succeed. Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
  /** Aborting it ends the wait. It does not affect a grant that the call has returned. */
  readonly signal?: AbortSignal | undefined;
}

/** A lock that this member holds. `await using` releases it. */
export interface Grant extends Tenure, AsyncDisposable {
  readonly name: string;
  /** Releases this grant. Further calls, and calls after the lock was lost, have no effect. */
  release(): Promise<void>;
}
