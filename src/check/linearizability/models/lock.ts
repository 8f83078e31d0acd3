/** A lock with one holder, who alone may release it, and fencing tokens where grants carry them. */
import { unexpected } from "../../../core/errors.ts";
import type { Operation, Process } from "../history.ts";
import type { Model, ModelCall } from "../model.ts";

interface Held {
  readonly holder: Process | null;
  /** Of the last grant; −1 before the first one. */
  readonly token: number;
}

const isToken = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * Output: a token, which must exceed all before it; `true` or `null` for a grant without one; `false` for a refusal,
 * which says that somebody held the lock. When the answer never came the grant may have carried any greater token: it is
 * counted as the least of them, which rules out nothing that another would allow.
 */
const acquire: ModelCall<Held> = {
  problem: ({ output }) =>
    output === undefined || output === null || typeof output === "boolean" || isToken(output)
      ? null
      : unexpected("the value returned", "a token (a whole number ≥ 0), true, false or null", output),
  step(state, { process, output }) {
    if (output === false) return state.holder === null ? null : state;
    if (state.holder !== null) return output === undefined ? state : null;
    if (isToken(output)) return output > state.token ? { holder: process, token: output } : null;
    return { holder: process, token: output === undefined ? state.token + 1 : state.token };
  },
  observes: ({ output }) => output === false,
};

/** The argument may be the token to give back. Output `false` says that the caller did not hold the lock. */
const release: ModelCall<Held> = {
  problem({ input, output }) {
    if (input !== null && !isToken(input)) return unexpected("the value of the call", "a token or null", input);
    if (output === undefined || output === null || typeof output === "boolean" || output === input) return null;
    return unexpected("the value returned", "true, false or null", output);
  },
  step(state, { process, output }) {
    const isHolder = state.holder === process;
    if (output === false) return isHolder ? null : state;
    if (isHolder) return { holder: null, token: state.token };
    return output === undefined ? state : null;
  },
  observes: ({ output }: Operation) => output === false,
};

export const lock = (): Model<Held> => ({
  name: "lock",
  about: "acquire, release; a holder at a time, tokens increase; with keys, one lock per name",
  init: { holder: null, token: -1 },
  calls: { acquire, release },
  knowsProcesses: true,
  show: ({ holder, token }) =>
    `${holder === null ? "free" : `held by ${holder}`}${token >= 0 ? `, token ${token}` : ""}`,
});
