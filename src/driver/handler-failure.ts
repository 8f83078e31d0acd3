/** Errors thrown by handlers, together with the node, the handler and its input. */
import { InvariantViolation, UsageError } from "../core/errors.ts";
import type { NodeId, StateProperty, Tagged, Vocabulary } from "../core/protocol.ts";
import type { Stimulus } from "../core/step.ts";
import { bodyOf } from "../core/wrapping.ts";

/** Describes a handler that threw an error. */
export interface HandlerFailure {
  readonly node: NodeId;
  /** The name of the handler, such as `receive election`. */
  readonly handler: string;
  /** The error that was thrown. */
  readonly error: unknown;
}

/** The maximum number of effects in one step. A handler that records more is assumed to be in an endless loop. */
const MAX_EFFECTS = 100_000;

/**
 * Checks the number of effects.
 * @param effects how many effects the step has recorded so far
 * @throws InvariantViolation if there are too many
 */
export function requireFewEffects(effects: number): void {
  if (effects > MAX_EFFECTS)
    throw new InvariantViolation("endless-step", `expected at most ${MAX_EFFECTS} effects in one step, got more`);
}

/** Returns the name of the handler that a stimulus triggers. */
export function handlerOf(stimulus: Stimulus<Vocabulary>): string {
  switch (stimulus.kind) {
    case "start":
      return "start";
    case "receive":
      return `receive ${typeName(stimulus.message)}`;
    case "timeout":
      return `timeout ${stimulus.timer as string}`;
    case "command":
      return `command ${typeName(stimulus.command)}`;
    case "replay":
      return `replay ${typeName(stimulus.record)}`;
  }
}

const typeName = (content: Tagged): string => partName(content.type, content);

/** Returns the name of a handler in an assembly. A part's content is named after the part and its own type. */
function partName(name: string, content: Tagged | null): string {
  const inside = content && bodyOf(content);
  return inside === null ? name : `${name}.${inside.type}`;
}

/** Describes a stimulus, such as `node 1, receive election {"type":"election"} from 0`. */
export function occasionOf(node: NodeId, stimulus: Stimulus<Vocabulary>): string {
  const occasion = `node ${node}, ${handlerOf(stimulus)}`;
  if (stimulus.kind === "receive") return `${occasion} ${shown(stimulus.message)} from ${stimulus.from}`;
  if (stimulus.kind === "command") return `${occasion} ${shown(stimulus.command)}`;
  return stimulus.kind === "replay" ? `${occasion} ${shown(stimulus.record)}` : occasion;
}

/** Formats a value as JSON, truncated to 200 characters. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}

/** Returns the same error with the place appended to its message. Its class and code stay the same. */
export function placed(error: unknown, place: string): Error {
  if (error instanceof UsageError) return new UsageError(error.code, `${error.message} (${place})`, { cause: error });
  if (error instanceof InvariantViolation)
    return new InvariantViolation(error.code, `${error.message} (${place})`, { cause: error });
  return new InvariantViolation("handler-failed", `a handler threw ${String(error)} (${place})`, { cause: error });
}

const failures = new WeakMap<object, HandlerFailure>();

/** Returns a property that the failure violates, so that the run can be shown like any other counterexample. */
export function failureProperty<V extends Vocabulary>(failure: HandlerFailure): StateProperty<V> {
  const { node, handler, error } = failure;
  const claim = `no handler throws, but “${handler}” of node ${node} threw ${String(error)}`;
  const property: StateProperty<V> = { name: "no handler throws", claim, when: "always", holds: () => true };
  failures.set(property, failure);
  return property;
}

/** Returns the failure behind a property created by `failureProperty`. Null for any other property. */
export const failureIn = (property: object | null): HandlerFailure | null =>
  (property === null ? undefined : failures.get(property)) ?? null;
