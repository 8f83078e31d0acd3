/** Models of the sequential behavior of one object. */
import { UsageError, unexpected } from "../core/errors.ts";
import { canonical, equal } from "../core/plain.ts";
import type { Operation, Process, Value } from "./history.ts";

/** The sequential behavior of one kind of object, for checking histories. */
// Methods rather than function properties, so that a `Model<State>` is assignable to `Model` for callers that only pass
// its states on.
export interface Model<State = unknown> {
  /** The name of the model, such as `register`. */
  readonly name: string;
  /** A one-line description, for use in lists of models. */
  readonly about: string;
  /** The initial state. Like every state, it is plain data. */
  readonly init: State;
  /** The operations, keyed by name. */
  readonly calls: Readonly<Record<string, ModelCall<State>>>;
  /** Whether every operation must have a key that names its object. */
  readonly needsKey?: boolean;
  /**
   * Whether it matters which process makes a call, as for a lock. If so, equal calls from different processes count as
   * different calls.
   */
  readonly knowsProcesses?: boolean;
  /**
   * Returns all operations on an object, sorted by when they are predicted to take effect. Default: the order of their
   * returns. The search tries earlier operations first. The prediction is only a hint: it affects how long the search
   * takes, not its result.
   */
  foresee?(operations: readonly Operation[]): readonly Operation[];
  /** Returns a short description of the state. */
  show(state: State): string;
}

/** One operation of a model. */
export interface ModelCall<State> {
  /** Returns a description of the problem with the argument or the result. Null if both are valid. */
  problem?(operation: Operation): string | null;
  /**
   * Returns the state afterwards, or null if the operation is impossible. An unknown output (`undefined`) is compatible
   * with any result.
   */
  step(state: State, operation: Operation): State | null;
  /**
   * Whether the operation, with this output or an unknown one, never changes any state. Returning true speeds up the
   * search; returning false is always safe.
   */
  observes?(operation: Operation): boolean;
}

/**
 * Checks that a model accepts the operations.
 * @throws UsageError for the first operation that is not in the model, or whose values the model rejects
 */
export function requireFitting(operations: readonly Operation[], model: Model): void {
  for (const operation of operations) {
    const problem = misfit(operation, model);
    if (problem === null) continue;
    const place = operation.line === null ? `operation ${show(operation)}` : `line ${operation.line}`;
    throw new UsageError("bad-history", `${place}: ${problem}`);
  }
}

function misfit(operation: Operation, model: Model): string | null {
  const call = Object.hasOwn(model.calls, operation.f) ? model.calls[operation.f] : undefined;
  if (call === undefined) {
    const known = Object.keys(model.calls).join(", ");
    return unexpected("f", `an operation of the model ${model.name} (${known})`, operation.f);
  }
  if (model.needsKey === true && operation.key === undefined)
    return `expected a key, since the model ${model.name} has many objects, got none`;
  return call.problem?.(operation) ?? null;
}

/** Formats a call and its result, such as `write 3`, `read → 3`, `cas 1 2 → false` or `enqueue a → ?`. */
export function show({ f, input, output, return: end }: Operation): string {
  const asked = input === null ? f : `${f} ${(isPair(input) ? input : [input]).map(showValue).join(" ")}`;
  if (end === null) return `${asked} → ?`;
  const isEcho = output === null || output === undefined || output === true || canonical(output) === canonical(input);
  if (isEcho && input !== null) return asked;
  return output === undefined ? asked : `${asked} → ${showValue(output)}`;
}

/** Formats a value. Simple words are shown without quotes. */
export const showValue = (value: Value): string =>
  typeof value === "string" && /^[\w.:-]+$/.test(value) ? value : value === null ? "nil" : canonical(value);

export const isPair = (value: Value): value is readonly [Value, Value] => Array.isArray(value) && value.length === 2;

interface Holding {
  readonly value: Value;
}

/** Returns the current value. */
const readRegister: ModelCall<Holding> = {
  step: (state, { output }) => (output === undefined || equal(output, state.value) ? state : null),
  observes: () => true,
};

/** Sets the value. Any output counts as an acknowledgement. */
const write: ModelCall<Holding> = {
  step: (_state, { input }) => ({ value: input }),
};

/**
 * Replaces the value if it equals the expected one. The argument is `[old, new]`. Output `false`: the value was not
 * `old`, so nothing changed.
 */
const compareAndSet: ModelCall<Holding> = {
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
    return output === undefined ? state : null; // The result is unknown.
  },
  observes: ({ output }: Operation) => output === false,
};

/** Creates a register with read, write and compare-and-set. */
export const register = (initial: Value = null): Model<Holding> => ({
  name: "register",
  about: "read, write, cas [old new]; with keys, one register per key",
  init: { value: initial },
  calls: { read: readRegister, write, cas: compareAndSet },
  show: ({ value }) => showValue(value),
});

/** Deletes the value. Output `true`: there was a value to delete. Output `false`: there was none. */
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

/** Creates a map whose keys are registers that can also be deleted. */
export const map = (): Model<Holding> => ({
  name: "map",
  about: "get, put, delete, cas [old new], each on a key",
  init: { value: null },
  calls: { get: readRegister, put: write, delete: remove, cas: compareAndSet },
  needsKey: true,
  show: ({ value }) => (value === null ? "absent" : showValue(value)),
});

interface Count {
  readonly count: number;
}

/** Adds to the count. The argument may be negative. If the output is a number, it is the sum. */
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

const readCounter: ModelCall<Count> = {
  step: (state, { output }) => (output === undefined || output === state.count ? state : null),
  observes: () => true,
};

/** Creates a counter with additions and reads. */
export const counter = (initial = 0): Model<Count> => ({
  name: "counter",
  about: "add (which may return the sum), read",
  init: { count: initial },
  calls: { add, read: readCounter },
  show: ({ count }) => String(count),
});

interface Held {
  readonly holder: Process | null;
  /** The token of the last grant. −1 before the first grant. */
  readonly token: number;
}

const isToken = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/**
 * Acquires the lock. The output is a token, which must be greater than all earlier ones; `true` or `null` for a grant
 * without a token; or `false` for a refusal, which is possible only while the lock is held. If the reply was lost, the
 * grant may have had any greater token. The smallest one is assumed, which does not rule out anything that another
 * token would allow.
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

/** Releases the lock. The argument may be the token to release. Output `false`: the caller did not hold the lock. */
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

/** Creates a mutual exclusion lock, optionally with fencing tokens. */
export const lock = (): Model<Held> => ({
  name: "lock",
  about: "acquire, release; one holder at a time, tokens increase; with keys, one lock per key",
  init: { holder: null, token: -1 },
  calls: { acquire, release },
  knowsProcesses: true,
  show: ({ holder, token }) =>
    `${holder === null ? "free" : `held by ${holder}`}${token >= 0 ? `, token ${token}` : ""}`,
});

type Queued = readonly Value[];

const enqueue: ModelCall<Queued> = {
  problem: ({ input }) => (input === null ? unexpected("the value of the call", "what to enqueue", input) : null),
  step: (queued, { input }) => [...queued, input],
};

/** Removes the oldest value. Output `null`: the queue was empty. */
const dequeue: ModelCall<Queued> = {
  step(queued, { output }) {
    const [first, ...rest] = queued;
    if (first === undefined) return output === null || output === undefined ? queued : null;
    return output === undefined || (output !== null && equal(output, first)) ? rest : null;
  },
  observes: ({ output }) => output === null,
};

/** A value that was enqueued and, if it was dequeued, the operation that dequeued it. */
interface Passage {
  readonly enqueued: Operation;
  readonly dequeued: Operation | null;
}

/**
 * Predicts an order. Dequeues come first, because an emptier queue never hurts. Enqueues come in an order that
 * contradicts neither the real-time order of the enqueues nor the one of the dequeues. A wrong order would fail only
 * much later, when a value is dequeued.
 */
function foresee(operations: readonly Operation[]): Operation[] {
  const dequeues = operations.filter(({ f }) => f === "dequeue").sort((a, b) => endOf(a) - endOf(b));
  const waiting = passages(operations, dequeues).sort((a, b) => endOf(a.dequeued) - endOf(b.dequeued));
  const byEnqueue = [...waiting].sort((a, b) => endOf(a.enqueued) - endOf(b.enqueued));
  const order: Operation[] = [];
  const done = new Set<Passage>();
  const mayBeNext = ({ enqueued, dequeued }: Passage): boolean =>
    enqueued.call <= endOf(byEnqueue[0]?.enqueued) && (dequeued?.call ?? Infinity) <= endOf(waiting[0]?.dequeued);
  while (waiting.length > 0) {
    const at = waiting.findIndex(mayBeNext);
    const [next] = waiting.splice(Math.max(at, 0), 1) as [Passage]; // If there is none, no such order exists.
    done.add(next);
    while (byEnqueue[0] !== undefined && done.has(byEnqueue[0])) byEnqueue.shift();
    order.push(next.enqueued);
  }
  return [...dequeues, ...order];
}

/**
 * Pairs each enqueue with its dequeue. Of several equal values, the one enqueued first is assumed to be dequeued first.
 */
function passages(operations: readonly Operation[], dequeues: readonly Operation[]): Passage[] {
  const takings = new Map<string, Operation[]>();
  for (const dequeued of dequeues) {
    const value = canonical(dequeued.output);
    const same = takings.get(value) ?? [];
    if (same.push(dequeued) === 1) takings.set(value, same);
  }
  const enqueues = operations.filter(({ f }) => f === "enqueue").sort((a, b) => a.call - b.call);
  return enqueues.map((enqueued) => ({ enqueued, dequeued: takings.get(canonical(enqueued.input))?.shift() ?? null }));
}

const endOf = (operation: Operation | null | undefined): number => operation?.return ?? Infinity;

/** Creates a FIFO queue. */
export const queue = (): Model<Queued> => ({
  name: "queue",
  about: "enqueue, dequeue (null when empty), first in first out",
  init: [],
  calls: { enqueue, dequeue },
  foresee,
  show: (queued) => `[${queued.map(showValue).join(" ")}]`,
});

/** The models, keyed by name. */
const models: Readonly<Record<string, () => Model>> = {
  register,
  map,
  queue,
  lock,
  counter,
};

/** The names of the built-in models. */
export const modelNames: readonly string[] = Object.keys(models);

/** Creates the model with this name. @throws UsageError if the name is not in `modelNames` */
export function modelNamed(name: string): Model {
  const model = Object.hasOwn(models, name) ? models[name] : undefined;
  if (model === undefined) throw new UsageError("unknown-model", unexpected("model", modelNames.join(", "), name));
  return model();
}
