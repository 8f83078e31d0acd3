/**
 * What callers of the public API give, checked in one way: before anything has begun, in the words in which it was given.
 * Every refusal is a `UsageError` that says "expected X of call() to be Y, got Z".
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { clone } from "../../core/plain.ts";

/** What one option may be; `wanted` ends the sentence "expected X of call() to be …". */
export interface Rule {
  readonly wanted: string;
  accepts(value: unknown): boolean;
  /** Whether it may not be left out. */
  readonly isNeeded?: true;
}

/** One for each option there is, so that none goes unchecked. */
export type Rules<O> = { readonly [K in keyof Required<O>]: Rule };

export const text: Rule = {
  wanted: "a text that is not empty",
  accepts: (value) => typeof value === "string" && value !== "",
};
export const flag: Rule = { wanted: "true or false", accepts: (value) => typeof value === "boolean" };
export const finite: Rule = { wanted: "a finite number", accepts: (value) => Number.isFinite(value) };
export const natural: Rule = {
  wanted: "a whole number of 0 or more",
  accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
export const positive: Rule = {
  wanted: "a whole number > 0",
  accepts: (value) => Number.isSafeInteger(value) && (value as number) > 0,
};
/** Of a wait; `Infinity` is for ever. */
export const duration: Rule = {
  wanted: "a number of milliseconds above 0",
  accepts: (value) => typeof value === "number" && value > 0,
};
export const work: Rule = { wanted: "a function", accepts: (value) => typeof value === "function", isNeeded: true };
/** An `AbortController` in place of its signal would fail only when somebody waits for it, with a timer set already. */
export const signal: Rule = { wanted: "an AbortSignal", accepts: isSignal };
export const fields: Rule = { wanted: "an object", accepts: isObject };
/** `console` is one, and so are those of pino and winston. */
export const logger: Rule = {
  wanted: "a logger: an object with the functions info, warn and error, such as console",
  accepts: (value) => isObject(value) && ["info", "warn", "error"].every((name) => isFunctionOf(value, name)),
};
/** prom-client's `Registry` is one. */
export const registry: Rule = {
  wanted:
    "a registry of metrics: an object with the functions registerMetric and removeSingleMetric, such as prom-client's Registry",
  accepts: (value) =>
    isObject(value) && ["registerMetric", "removeSingleMetric"].every((name) => isFunctionOf(value, name)),
};
/** What can be sent to other members as JSON. */
export const plainData: Rule = {
  wanted: "an object of plain data",
  accepts: (value) => isObject(value) && isPlain(value),
};

export const oneOf = (...words: readonly string[]): Rule => ({
  wanted: `one of ${words.join(", ")}`,
  accepts: (value) => words.includes(value as string),
});
export const needed = (rule: Rule): Rule => ({ wanted: rule.wanted, accepts: rule.accepts, isNeeded: true });

/**
 * A misspelt option would be passed over in silence: `acquire({ timeout: 5 })` would wait for ever.
 * @param call as the caller wrote it, such as `acquire`.
 * @param path of options inside others, such as `limits`.
 * @throws UsageError that names the first that cannot be, and the call.
 */
export function requireOptions<O extends object>(call: string, given: unknown, rules: Rules<O>, path = ""): void {
  if (!isObject(given))
    throw refusal(path === "" ? `the options of ${call}()` : `${path} of ${call}()`, "an object", given);
  const known = Object.keys(rules);
  const stray = Object.keys(given).find((name) => !known.includes(name));
  if (stray !== undefined) throw unknownOption(call, path, stray, known);
  for (const [name, rule] of Object.entries<Rule>(rules))
    requireRule(
      `${path === "" ? name : `${path}.${name}`} of ${call}()`,
      (given as Record<string, unknown>)[name],
      rule,
    );
}

/** @throws UsageError that names `what`. */
export function requireRule(what: string, value: unknown, rule: Rule): void {
  if (value === undefined && rule.isNeeded !== true) return;
  if (rule.accepts(value)) return;
  throw refusal(what, rule.wanted, value instanceof AbortController ? CONTROLLER : value);
}

/**
 * What a part further in has refused, in the words of whoever called.
 * @param algorithm whose options the call was given.
 */
export function refusedIn(call: string, error: unknown, algorithm?: string): unknown {
  if (!(error instanceof UsageError) || !OF_AN_OPTION.has(error.code)) return error;
  const given = error.message.replace(`expected ${algorithm}.`, "expected options.");
  const message = SUBJECT.test(given)
    ? given.replace(SUBJECT, (_all, what: string, verb: string) => `expected ${what} of ${call}() to ${verb} `)
    : `${call}(): ${given}`;
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

const CONTROLLER = "an AbortController: its signal is meant";

const refusal = (what: string, wanted: string, got: unknown): UsageError =>
  new UsageError("bad-option", unexpected(what, wanted, got));

function unknownOption(call: string, path: string, stray: string, known: readonly string[]): UsageError {
  const whose = path === "" ? `the options of ${call}()` : `the options in ${path} of ${call}()`;
  const near = nearest(stray, known);
  // An algorithm's own options are one level down.
  const inner = known.includes("options") ? `; options of the algorithm are written options: { ${stray} }` : "";
  const hint = near === null ? inner : `: ${near} is meant?`;
  return new UsageError("bad-option", `${unexpected(whose, `among ${known.join(", ")}`, stray)}${hint}`);
}

/** The known word that a slip of the pen, or half a word, may stand for; null if none is near. */
function nearest(stray: string, known: readonly string[]): string | null {
  const wanted = stray.toLowerCase();
  const rated = known.map((word) => {
    const lower = word.toLowerCase();
    const isPart = wanted.length > 2 && (lower.startsWith(wanted) || wanted.startsWith(lower));
    return { word, distance: isPart ? 1 : distance(wanted, lower) };
  });
  const best = rated.toSorted((a, b) => a.distance - b.distance)[0];
  return best !== undefined && best.distance <= Math.max(1, stray.length / 3) ? best.word : null;
}

/** How many letters have to be inserted, left out or changed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries())
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    row = next;
  }
  return row[to.length] ?? 0;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFunctionOf(value: object, name: string): boolean {
  return typeof (value as Record<string, unknown>)[name] === "function";
}

function isPlain(value: unknown): boolean {
  try {
    clone(value);
    return true;
  } catch {
    return false;
  }
}

/** Or what looks like one: there are several implementations. */
function isSignal(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
  const listens = typeof addEventListener === "function" && typeof removeEventListener === "function";
  return typeof aborted === "boolean" && listens;
}
