/** A model: what one object does when its operations come one after another. */
import { UsageError, unexpected } from "../../core/errors.ts";
import { canonical } from "../../core/plain.ts";
import type { Operation, Value } from "./history.ts";

// Methods, not function properties, so that a `Model<State>` is a `Model` to those who only pass its states on.
export interface Model<State = unknown> {
  readonly name: string;
  /** One line for a list of models. */
  readonly about: string;
  /** Plain data, as every state. */
  readonly init: State;
  readonly calls: Readonly<Record<string, ModelCall<State>>>;
  /** Every operation must name its object by a key. */
  readonly needsKey?: boolean;
  /** Who calls matters, as with a lock: the same call of another process is another call. */
  readonly knowsProcesses?: boolean;
  /**
   * All the operations of an object, in an order in which they might take effect; without it, as they return. The search
   * tries the first of them first. A hint: it changes how soon there is a verdict, not which.
   */
  foresee?(operations: readonly Operation[]): readonly Operation[];
  /** The state in a few words. */
  show(state: State): string;
}

export interface ModelCall<State> {
  /** What is wrong with the argument or the result, if anything is. */
  problem?(operation: Operation): string | null;
  /** The state after it, or null where it cannot have happened so. An output of `undefined` fits whatever comes out. */
  step(state: State, operation: Operation): State | null;
  /** With this output (or an unknown one) it never changes a state. True speeds the search up; false is always safe. */
  observes?(operation: Operation): boolean;
}

/** @throws UsageError for the first operation that the model does not know, or whose values are not what it takes. */
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

/** `write 3`, `read → 3`, `cas 1 2 → false`, `enqueue a → ?`: what was called, and what was learnt. */
export function show({ f, input, output, return: end }: Operation): string {
  const asked = input === null ? f : `${f} ${(isPair(input) ? input : [input]).map(showValue).join(" ")}`;
  if (end === null) return `${asked} → ?`;
  const isEcho = output === null || output === undefined || output === true || canonical(output) === canonical(input);
  if (isEcho && input !== null) return asked;
  return output === undefined ? asked : `${asked} → ${showValue(output)}`;
}

/** Plain words stand without quotes. */
export const showValue = (value: Value): string =>
  typeof value === "string" && /^[\w.:-]+$/.test(value) ? value : value === null ? "nil" : canonical(value);

export const isPair = (value: Value): value is readonly [Value, Value] => Array.isArray(value) && value.length === 2;
