/** Rules for the options of a member's calls. They extend `protocols/known-options.ts`. */
import { UsageError } from "../../core/errors.ts";
import { callback, isObject, needed, type Rule } from "../../protocols/known-options.ts";

export * from "../../protocols/known-options.ts";

export const text: Rule = {
  wanted: "a non-empty string",
  accepts: (value) => typeof value === "string" && value !== "",
};
export const finite: Rule = { wanted: "a finite number", accepts: (value) => Number.isFinite(value) };
export const positive: Rule = {
  wanted: "a whole number > 0",
  accepts: (value) => Number.isSafeInteger(value) && (value as number) > 0,
};
/** The maximum time to wait. `Infinity` means no limit. */
export const duration: Rule = {
  wanted: "a number of milliseconds above 0",
  accepts: (value) => typeof value === "number" && value > 0,
};
/** Any value. Its type is checked when it is used. */
export const anything: Rule = { wanted: "anything", accepts: () => true };
export const work: Rule = needed(callback);
/**
 * An `AbortSignal`. If an `AbortController` were accepted by mistake, the call would fail only when it waits, after a
 * timer has been set.
 */
export const signal: Rule = {
  wanted: "an AbortSignal",
  accepts: isSignal,
  shown: (value) => (value instanceof AbortController ? CONTROLLER : undefined),
};
/** A logger: `console`, or one from pino or winston. */
export const logger: Rule = {
  wanted: "a logger: an object with the functions info, warn and error, such as console",
  accepts: (value) => isObject(value) && ["info", "warn", "error"].every((name) => isFunctionOf(value, name)),
};
/** A prom-client registry. */
export const registry: Rule = {
  wanted:
    "a metric registry: an object with the functions registerMetric and removeSingleMetric, such as prom-client's Registry",
  accepts: (value) =>
    isObject(value) && ["registerMetric", "removeSingleMetric"].every((name) => isFunctionOf(value, name)),
};

/** Returns the same error, naming the call that the caller made. */
export function refusedIn(call: string, error: unknown): unknown {
  if (!(error instanceof UsageError) || !OF_AN_OPTION.has(error.code)) return error;
  const message = SUBJECT.test(error.message)
    ? error.message.replace(SUBJECT, (_all, what: string, verb: string) => `expected ${what} of ${call}() to ${verb} `)
    : `${call}(): ${error.message}`;
  return new UsageError(error.code === "bad-config" ? "bad-option" : error.code, message, { cause: error });
}

const OF_AN_OPTION = new Set([
  "bad-option",
  "bad-config",
  "bad-limits",
  "bad-multicast",
  "bad-name",
  "unknown-algorithm",
]);
const SUBJECT = /^expected (.+?) to (be|have) /;

const CONTROLLER = "an AbortController: pass its signal";

function isFunctionOf(value: object, name: string): boolean {
  return typeof (value as Record<string, unknown>)[name] === "function";
}

/** Whether the value is a signal. Accepts similar objects too, since there are several implementations. */
function isSignal(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
  const listens = typeof addEventListener === "function" && typeof removeEventListener === "function";
  return typeof aborted === "boolean" && listens;
}
