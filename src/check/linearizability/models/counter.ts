/** A counter that is added to and read. */
import { unexpected } from "../../../core/errors.ts";
import type { Model, ModelCall } from "../model.ts";

interface Count {
  readonly count: number;
}

/** The argument may be negative. A number that is returned is the sum. */
const add: ModelCall<Count> = {
  problem({ input, output }) {
    if (!Number.isSafeInteger(input)) return unexpected("the value of the call", "a whole number", input);
    if (output === undefined || output === null || output === true || Number.isSafeInteger(output)) return null;
    return unexpected("the value returned", "the sum, true or null", output);
  },
  step(state, { input, output }) {
    const count = state.count + (input as number);
    return typeof output === "number" && output !== count ? null : { count };
  },
};

const read: ModelCall<Count> = {
  step: (state, { output }) => (output === undefined || output === state.count ? state : null),
  observes: () => true,
};

export const counter = (initial = 0): Model<Count> => ({
  name: "counter",
  about: "add (which may return the sum), read",
  init: { count: initial },
  calls: { add, read },
  show: ({ count }) => String(count),
});
