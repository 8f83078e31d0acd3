/** A map: under every key a register that can be empty. What is absent reads as null. */
import { unexpected } from "../../../core/errors.ts";
import { type Model, type ModelCall, showValue } from "../model.ts";
import { compareAndSet, type Holding, read, write } from "./register.ts";

/** Output `true` says that there was something to delete, `false` that there was not. */
const remove: ModelCall<Holding> = {
  problem: ({ output }) =>
    output === undefined || output === null || typeof output === "boolean"
      ? null
      : unexpected("the value returned", "true, false or null", output),
  step(state, { output }) {
    const wasThere = state.value !== null;
    return typeof output === "boolean" && output !== wasThere ? null : { value: null };
  },
};

export const map = (): Model<Holding> => ({
  name: "map",
  about: "get, put, delete, cas [old new], each on a key",
  init: { value: null },
  calls: { get: read, put: write, delete: remove, cas: compareAndSet },
  needsKey: true,
  show: ({ value }) => (value === null ? "absent" : showValue(value)),
});
