/** Models the service's keys and counters as one object for the history checker, with sequential semantics. */

import { equal } from "../../../src/core/plain.ts";
import type { Model, ModelCall } from "../../../src/history/model.ts";

export interface Store {
  readonly values: Readonly<Record<string, string | number>>;
}

const held = ({ values }: Store, key: string): string | number | null => values[key] ?? null;

/** Sets or deletes a key. Deleted keys are left out. */
function withValue({ values }: Store, key: string, value: string | number | null): Store {
  const rest = Object.entries(values).filter(([other]) => other !== key);
  const all = value === null ? rest : [...rest, [key, value] as const];
  return { values: Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1))) };
}

const fits = (output: unknown, actual: unknown): boolean => output === undefined || equal(output, actual);

/** Input: `[key, value]`. Output: the previous value. */
const put: ModelCall<Store> = {
  step(state, { input, output }) {
    const [key, value] = input as [string, string | null];
    return fits(output, held(state, key)) ? withValue(state, key, value) : null;
  },
};

const get: ModelCall<Store> = {
  step: (state, { input, output }) => (fits(output, held(state, input as string)) ? state : null),
  observes: () => true,
};

/** Input: `[key, by]`. Output: the sum. */
const add: ModelCall<Store> = {
  step(state, { input, output }) {
    const [key, by] = input as [string, number];
    const sum = Number(held(state, key) ?? 0) + by;
    return fits(output, sum) ? withValue(state, key, sum) : null;
  },
};

/** Input: `[from, to, value]`. Moves the value to the other key if the first key holds it. Output: whether it moved. */
const move: ModelCall<Store> = {
  step(state, { input, output }) {
    const [from, to, value] = input as [string, string, string];
    const isThere = held(state, from) === value;
    if (!fits(output, isThere)) return null;
    return isThere ? withValue(withValue(state, from, null), to, value) : state;
  },
};

/** Input: a list of keys. Output: their values at one moment. */
const snapshot: ModelCall<Store> = {
  step(state, { input, output }) {
    const values = (input as string[]).map((key) => held(state, key));
    return fits(output, values) ? state : null;
  },
  observes: () => true,
};

export const store = (): Model<Store> => ({
  name: "store",
  about: "put, get, add, move between keys, and several keys at once",
  init: { values: {} },
  calls: { put, get, add, move, snapshot },
  show: ({ values }) => JSON.stringify(values),
});
