/** The API of anything that a member holds and may lose: a lock, a permit, a queue item, or leadership. */

/**
 * Something that this member holds exclusively until it releases or loses it, such as a lock or leadership. Check
 * `signal` before each action that relies on it, and pass `token` to the resource.
 */
export interface Tenure {
  /**
   * The fencing token. Each new tenure under the same name has a higher token, across all members. A resource that
   * remembers the highest token can reject stale ones.
   */
  readonly token: number;
  /**
   * Aborted before another member can become the holder. If this process is paused, `aborted` is already true in the
   * first line that runs afterwards, and listeners run soon after. The reason is a `CoordinationError`.
   */
  readonly signal: AbortSignal;
  /**
   * Whether this member certainly is the holder now. The getter also reads the clock, so it is correct even right after
   * a pause.
   */
  readonly isHeld: boolean;
  /**
   * When the tenure expires unless it is renewed, on the scale of `performance.now()`. Null until it is first
   * confirmed.
   */
  readonly deadline: number | null;
  /**
   * Calls the listener immediately with the current `deadline`, and again with each new one. An error thrown by the
   * listener becomes an uncaught error, as with listeners on `signal`.
   *
   * @returns a function that removes the listener
   */
  onDeadline(listener: (deadline: number) => void): () => void;
}

/** Options for `Mutex.acquire()` and similar calls. */
export interface AcquireOptions {
  /**
   * The maximum time to wait. Must be above 0: acquiring a lock requires an answer from other members, so a call that
   * does not wait could never succeed. Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
  /** Aborting it ends the wait. This does not affect a grant that the call has already returned. */
  readonly signal?: AbortSignal | undefined;
}

/** A lock that this member holds. `await using` releases it. */
export interface Grant extends Tenure, AsyncDisposable {
  /** The name of the lock or semaphore. */
  readonly name: string;
  /** Releases this grant. Calling it again, or after the lock was lost, has no effect. */
  release(): Promise<void>;
}
