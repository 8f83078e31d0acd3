/** A register that is read, written, and compared and set. */
import { unexpected } from "../../../core/errors.ts";
import { equal } from "../../../core/plain.ts";
import type { Operation, Value } from "../history.ts";
import { isPair, type Model, type ModelCall, showValue } from "../model.ts";

export interface Holding {
  readonly value: Value;
}

/** The value returned is the value held. */
export const read: ModelCall<Holding> = {
  step: (state, { output }) => (output === undefined || equal(output, state.value) ? state : null),
  observes: () => true,
};

/** The argument is held from now on; whatever is returned is an acknowledgement. */
export const write: ModelCall<Holding> = {
  step: (_state, { input }) => ({ value: input }),
};

/** The argument is `[old, new]`. Output `false` says that another value than `old` was held, and nothing changed. */
export const compareAndSet: ModelCall<Holding> = {
  problem({ input, output }) {
    if (!isPair(input)) return unexpected("the value of the call", "a pair [old, new]", input);
    const isOutcome = output === undefined || output === null || typeof output === "boolean" || equal(output, input);
    return isOutcome ? null : unexpected("the value returned", "true, false or the pair itself", output);
  },
  step(state, { input, output }) {
    const [expected, next] = input as readonly [Value, Value];
    const matches = equal(state.value, expected);
    if (output === false) return matches ? null : state;
    if (matches) return { value: next };
    return output === undefined ? state : null; // Nobody learnt whether it matched.
  },
  observes: ({ output }: Operation) => output === false,
};

export const register = (initial: Value = null): Model<Holding> => ({
  name: "register",
  about: "read, write, cas [old new]; with keys, one register per key",
  init: { value: initial },
  calls: { read, write, cas: compareAndSet },
  show: ({ value }) => showValue(value),
});
