/** Calls a user's callbacks in such a way that an error they throw does not affect the member. */

/**
 * Calls a callback. If it throws, the error becomes an uncaught exception of the program, as with listeners on an
 * `EventTarget` such as a grant's `signal`. Safe to use within a step of an algorithm.
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
