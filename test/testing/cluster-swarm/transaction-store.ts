/** Models the keys used in transactions as one object for the history checker. A missing key reads as null. */

import { equal } from "../../../src/core/plain.ts";
import type { Operation, Value } from "../../../src/history/history.ts";
import type { Model, ModelCall } from "../../../src/history/model.ts";

interface Store {
  readonly values: Readonly<Record<string, string>>;
}

/** A transaction's reads and writes. Null means that a key that was read did not exist, or that a key was deleted. */
export interface Effects {
  readonly reads: Readonly<Record<string, string | null>>;
  readonly writes: Readonly<Record<string, string | null>>;
}

const held = ({ values }: Store, key: string): string | null => values[key] ?? null;

function written({ values }: Store, writes: Effects["writes"]): Store {
  const after = { ...values, ...writes };
  const there = Object.entries(after).filter((entry): entry is [string, string] => entry[1] !== null);
  return { values: Object.fromEntries(there.sort(([a], [b]) => (a < b ? -1 : 1))) };
}

const fits = (output: Value | undefined, actual: Value): boolean => output === undefined || equal(output, actual);

/** Input: `[key, value]`. */
const put: ModelCall<Store> = {
  step(state, { input }) {
    const [key, value] = input as [string, string];
    return written(state, { [key]: value });
  },
};

const get: ModelCall<Store> = {
  step: (state, { input, output }) => (fits(output, held(state, input as string)) ? state : null),
  observes: () => true,
};

/** Output: whether the key existed. */
const remove: ModelCall<Store> = {
  step(state, { input, output }) {
    const key = input as string;
    return fits(output, held(state, key) !== null) ? written(state, { [key]: null }) : null;
  },
};

/** Input: `[key, old, new]`. Output: whether the value was `old`. */
const cas: ModelCall<Store> = {
  step(state, { input, output }) {
    const [key, old, next] = input as [string, string | null, string];
    const matches = held(state, key) === old;
    if (!fits(output, matches)) return null;
    return matches ? written(state, { [key]: next }) : state;
  },
  observes: ({ output }: Operation) => output === false,
};

/** Input: the transaction's `Effects`. A transaction that returned has read and written all its keys atomically. */
const transaction: ModelCall<Store> = {
  step(state, { input, output }) {
    const { reads, writes } = input as unknown as Effects;
    const matches = Object.entries(reads).every(([key, value]) => held(state, key) === value);
    if (matches) return written(state, writes);
    return output === undefined ? state : null;
  },
};

/** Input: a list of keys. Output: their values at the same moment. */
const readAll: ModelCall<Store> = {
  step: (state, { input, output }) =>
    fits(
      output,
      (input as string[]).map((key) => held(state, key)),
    )
      ? state
      : null,
  observes: () => true,
};

export const transactionStore = (): Model<Store> => ({
  name: "transaction store",
  about: "put, get, delete, cas, transactions and reads of several keys",
  init: { values: {} },
  calls: { put, get, delete: remove, cas, transaction, readAll },
  show: ({ values }) => JSON.stringify(values),
});
