/** Calling listeners of the caller. An error they throw does not affect the member. */

/**
 * Calls a listener of the caller. An error it throws becomes an uncaught exception of the program, as with listeners of an
 * `EventTarget`, such as a grant's `signal`. Safe to use within a step of an algorithm.
 */
export function callBack<A extends readonly unknown[]>(listener: (...given: A) => unknown, ...given: A): void {
  try {
    listener(...given);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
