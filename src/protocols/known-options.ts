/**
 * Validates the options passed to public API calls before anything starts. Every rejection is a `UsageError` with the
 * message "expected X of call() to be Y, got Z".
 */
import { UsageError, unexpected } from "../core/errors.ts";

/** A constraint on one option. `wanted` completes the sentence "expected X of call() to be …". */
export interface Rule {
  readonly wanted: string;
  accepts(value: unknown): boolean;
  /** Whether the option is required. */
  readonly isNeeded?: true;
  /** Returns a description of a value if its JSON would not be helpful. */
  shown?(value: unknown): string | undefined;
}

/** One rule per option, so that no option is left unchecked. */
export type Rules<O> = { readonly [K in keyof Required<O>]: Rule };

/** Accepts true or false. */
export const flag: Rule = { wanted: "true or false", accepts: (value) => typeof value === "boolean" };
/** Accepts a whole number of 0 or more. */
export const natural: Rule = {
  wanted: "a whole number of 0 or more",
  accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
/** Accepts a function. */
export const callback: Rule = { wanted: "a function", accepts: (value) => typeof value === "function" };
const isId = (value: unknown): boolean => natural.accepts(value);
/** Accepts a list of node ids. */
export const ids: Rule = {
  wanted: "whole numbers of 0 or more",
  accepts: (value) => Array.isArray(value) && value.every(isId),
};
/** Accepts a list of one or more different node ids. */
export const nodes: Rule = {
  wanted: "one or more different whole numbers of 0 or more",
  accepts: (value) =>
    Array.isArray(value) && value.length > 0 && value.every(isId) && new Set(value).size === value.length,
};
/** Accepts a protocol. */
export const protocol: Rule = {
  wanted: "a protocol: an object with a name, init() and properties",
  accepts: (value) => isObject(value) && typeof (value as { name?: unknown }).name === "string" && "init" in value,
};
/** Accepts an object. */
export const fields: Rule = { wanted: "an object", accepts: isObject };

/** Accepts one of the given strings. */
export const oneOf = (...words: readonly string[]): Rule => ({
  wanted: `one of ${words.join(", ")}`,
  accepts: (value) => words.includes(value as string),
});
/** Makes an option required. */
export const needed = (rule: Rule): Rule => ({ ...rule, isNeeded: true });

/**
 * Checks the options passed to a call. Without this check, a misspelled option would be ignored, and `acquire({
 * timeout: 5 })` would wait forever.
 * @param call the name of the call, such as `acquire`.
 * @param path the path to nested options, such as `limits`.
 * @throws UsageError naming the first invalid option and the call.
 */
export function requireOptions<O extends object>(call: string, given: unknown, rules: Rules<O>, path = ""): void {
  if (!isObject(given))
    throw refusal(path === "" ? `the options of ${call}()` : `${path} of ${call}()`, "an object", given);
  for (const stray of Object.keys(given))
    if (!Object.hasOwn(rules, stray)) throw unknownOption(call, path, stray, Object.keys(rules));
  for (const name in rules) {
    const [value, rule] = [(given as Record<string, unknown>)[name], rules[name]];
    if (!isKept(rule, value)) requireRule(`${path === "" ? name : `${path}.${name}`} of ${call}()`, value, rule);
  }
}

/** Checks one value. @throws UsageError naming `what`. */
export function requireRule(what: string, value: unknown, rule: Rule): void {
  if (!isKept(rule, value)) throw refusal(what, rule.wanted, rule.shown?.(value) ?? value);
}

const isKept = (rule: Rule, value: unknown): boolean =>
  value === undefined && rule.isNeeded !== true ? true : rule.accepts(value);

const refusal = (what: string, wanted: string, got: unknown): UsageError =>
  new UsageError("bad-option", unexpected(what, wanted, got));

function unknownOption(call: string, path: string, stray: string, known: readonly string[]): UsageError {
  const whose = path === "" ? `the options of ${call}()` : `the options in ${path} of ${call}()`;
  const near = nearest(stray, known);
  // The unknown option may belong to the algorithm, which has its options one level deeper.
  const inner = known.includes("options") ? `; set the algorithm's options with options: { ${stray} }` : "";
  const hint = near === null ? inner : `; did you mean ${near}?`;
  return new UsageError("bad-option", `${unexpected(whose, `among ${known.join(", ")}`, stray)}${hint}`);
}

/** Returns the known word that a misspelled or truncated word was probably meant to be. Null if none is close. */
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

/** Returns the number of letters that must be inserted, deleted or changed to get from one word to the other. */
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

/** Whether a value is an object other than an array. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
