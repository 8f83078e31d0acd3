/**
 * Repeats handlers to check that they are deterministic. A handler's result must depend only on its arguments, because
 * the checker caches results and a seed must repeat a simulated run. The checker and the simulator therefore repeat some
 * runs of each handler, both immediately and later, and compare the results.
 */
import { Chunk, isSameChunk } from "../core/chunk.ts";
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { clone } from "../core/plain.ts";
import type { NodeId, Protocol, StateOf, Vocabulary } from "../core/protocol.ts";
import { type Effect, type Stimulus, step } from "../core/step.ts";
import { handlerOf, occasionOf } from "./handler-failure.ts";

/**
 * How many of a handler's first runs are kept. After these, every `EVERY`th run is kept while there is room. A
 * handler's kept runs are repeated whenever its number of runs is a power of four.
 */
const FIRST = 8;
const EVERY = 64;
/** How often each handler's kept runs are repeated when a search ends. */
const REPETITIONS = 24;

interface RunningNode {
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
}

interface Sample<V extends Vocabulary> {
  readonly node: RunningNode;
  readonly state: StateOf<V>;
  readonly stimulus: Stimulus<V>;
  readonly result: Result;
}

type Result = { readonly state: object; readonly effects: readonly Effect<never>[] } | { readonly threw: string };

interface Noted<V extends Vocabulary> {
  runs: number;
  readonly samples: Sample<V>[];
}

/** Keeps sample runs of a protocol's handlers, and repeats them to find handlers that are not deterministic. */
export class Repetitions<V extends Vocabulary> {
  readonly #protocol: Protocol<V>;
  readonly #kept: number;
  readonly #noted = new Map<string, Noted<V>>();
  #offered = 0;

  /** @param kept the number of runs to keep for each handler */
  constructor(protocol: Protocol<V>, kept: number) {
    this.#protocol = protocol;
    this.#kept = kept;
  }

  /**
   * Whether the next run should be noted. A simulation takes a microsecond per step, so it notes all of the first runs,
   * and a fraction of the later ones.
   */
  isDue(): boolean {
    const number = this.#offered++;
    return number < ALL_OF_FIRST || number % ONE_OF_LATER === 0;
  }

  /**
   * Call this before a run of a handler.
   * @returns a function to call after the run, or null if there is nothing to do. It throws an InvariantViolation if a
   * repeated run has a different result
   */
  beforeRun(node: RunningNode, state: StateOf<V>, stimulus: Stimulus<V>): (() => void) | null {
    const handler = handlerOf(stimulus as Stimulus<Vocabulary>);
    let noted = this.#noted.get(handler);
    if (noted === undefined) {
      noted = { runs: 0, samples: [] };
      this.#noted.set(handler, noted);
    }
    const { samples } = noted;
    const number = noted.runs++;
    const isKept = samples.length < this.#kept && (number < FIRST || number % EVERY === 0);
    if (!isKept && !isPowerOfFour(number)) return null;
    const { self, peers } = node;
    const run = isKept ? { node: { self, peers }, state: clone(state), stimulus: clone(stimulus) } : null;
    return () => {
      if (run !== null) samples.push({ ...run, result: this.#resultOf(run, samples.length) });
      if (isPowerOfFour(number)) this.#repeat(samples);
    };
  }

  /**
   * Repeats all kept runs.
   * @throws InvariantViolation if a result differs
   */
  repeatAll(): void {
    for (const noted of this.#noted.values())
      for (let left = REPETITIONS; left > 0; left -= Math.max(1, noted.samples.length)) this.#repeat(noted.samples);
  }

  #repeat(samples: readonly Sample<V>[]): void {
    for (const [index, sample] of samples.entries()) {
      const again = this.#resultOf(sample, index);
      const difference = firstDifference(sample.result, again);
      if (difference === null) continue;
      const handler = handlerOf(sample.stimulus as Stimulus<Vocabulary>);
      if ("state" in again) requirePlainState(again.state, sample.node.self, `after ${handler}`);
      throw this.#refusal(sample, difference);
    }
  }

  /**
   * Repeats a run. Each sample makes choices according to its index, so that together the samples cover several
   * options.
   */
  #resultOf({ node, state, stimulus }: Omit<Sample<V>, "result">, index: number): Result {
    try {
      const choose = <T>(_label: string, options: readonly T[]): T => options[index % options.length] as T;
      return step(this.#protocol, node, state, clone(stimulus), choose) as Result;
    } catch (error) {
      return { threw: String(error) };
    }
  }

  #refusal({ node, stimulus }: Sample<V>, { path, values: [first, second] }: Difference): InvariantViolation {
    const place = occasionOf(node.self, stimulus as Stimulus<Vocabulary>);
    return new InvariantViolation(
      "not-repeatable",
      `expected a handler of ${this.#protocol.name} to do the same for the same state and ${kindOf(stimulus.kind)}, ` +
        `got ${first} and then ${second} in ${path} (${place}): use ctx.choose for randomness and timers for time, and keep everything that a node remembers in its state`,
    );
  }
}

/** How many runs simulations note: all of the first, and then one of every `ONE_OF_LATER`. */
const ALL_OF_FIRST = 2_000;
const ONE_OF_LATER = 64;

/** The number of runs of each handler that are kept for simulations. */
const KEPT_IN_SIMULATIONS = 8;
const shared = new WeakMap<object, Repetitions<Vocabulary>>();

/** Returns the repetitions that all simulations of a protocol share, so that many short runs cost no more than a long one. */
export function repetitionsOf<V extends Vocabulary>(protocol: Protocol<V>): Repetitions<V> {
  const known = shared.get(protocol) as Repetitions<V> | undefined;
  if (known !== undefined) return known;
  const made = new Repetitions(protocol, KEPT_IN_SIMULATIONS);
  shared.set(protocol, made);
  return made;
}

/** Whether a number is a power of four. Also true for 0. */
const isPowerOfFour = (number: number): boolean => (number & (number - 1)) === 0 && (number & 0x55555555) === number;

const kindOf = (kind: Stimulus<Vocabulary>["kind"]): string =>
  ({ start: "journal", receive: "message", timeout: "timer", command: "command", replay: "record" })[kind];

interface Difference {
  readonly path: string;
  readonly values: readonly [string, string];
}

/** Returns the first position at which two results differ. */
function firstDifference(first: unknown, second: unknown, path = ""): Difference | null {
  if (first instanceof Chunk && second instanceof Chunk && isSameChunk(first, second)) return null;
  if (!isObject(first) || !isObject(second) || first instanceof Chunk || second instanceof Chunk) {
    return Object.is(first, second) ? null : { path: path || "its result", values: [shown(first), shown(second)] };
  }
  const keys = new Set([...Object.keys(first), ...Object.keys(second)]);
  for (const key of keys) {
    const inner = Array.isArray(first) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    const difference = firstDifference(first[key], second[key], inner);
    if (difference !== null) return difference;
  }
  return null;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/**
 * Checks that a state is plain data.
 * @throws UsageError for the first value that is not. The message names the value and suggests a replacement.
 */
export function requirePlainState(state: unknown, node: NodeId, when: string): void {
  const found = strangerIn(state, "state", new Set());
  if (found === null) return;
  const { path, got, instead } = found;
  throw new UsageError(
    "not-plain",
    `expected the state of node ${node} to be plain data, got ${got} at ${path} ${when}: use ${instead}`,
  );
}

interface Stranger {
  readonly path: string;
  readonly got: string;
  readonly instead: string;
}

function strangerIn(value: unknown, path: string, around: Set<object>): Stranger | null {
  if (typeof value === "function") return { path, got: "a function", instead: "data, and keep functions outside" };
  if (typeof value === "symbol") return { path, got: "a symbol", instead: "a string" };
  if (typeof value === "bigint") return { path, got: "a bigint", instead: "a number or a string" };
  if (!isObject(value)) return null;
  if (around.has(value)) return { path, got: "an object that contains itself", instead: "ids instead of references" };
  const prototype: unknown = Array.isArray(value) ? null : Object.getPrototypeOf(value);
  if (prototype === Chunk.prototype) return null;
  if (prototype !== null && prototype !== Object.prototype) {
    const got = (value as object).constructor.name;
    return { path, got, instead: INSTEAD[got] ?? "an object literal with its fields" };
  }
  around.add(value);
  for (const key of Object.keys(value)) {
    const found = strangerIn(value[key], Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, around);
    if (found !== null) return found;
  }
  around.delete(value);
  return null;
}

const INSTEAD: Readonly<Record<string, string>> = {
  Map: "an object by key (PerNode<T> for node ids), or a list of pairs",
  Set: "a list",
  Date: "a number of milliseconds",
};
