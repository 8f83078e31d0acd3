/** Code of a caller that this program calls back. What it throws ends nothing but itself. */

/**
 * Calls a listener of a caller, from within a step of an algorithm or not. What it throws is an uncaught error of the program, as it is
 * with listeners of an `EventTarget`, such as those of a grant's `signal`.
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
