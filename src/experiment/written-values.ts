/** Parsers for values that users write on a command line or in a form. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { type Delay, requireDelay } from "../trace/link-model.ts";
import type { Nodes } from "./scenario/schema.ts";

/**
 * Parses the text of an option. @param option the option's name, for error messages. @throws UsageError if the text is
 * invalid
 */
export type Read<T> = (text: string, option: string) => T;

/** Rejects a value. @throws UsageError `bad-argument` */
export function refuse(option: string, expected: string, text: string): never {
  throw new UsageError("bad-argument", unexpected(option, expected, text));
}

export function wholeNumber(min: number, max: number, expected = `a whole number from ${min} to ${max}`): Read<number> {
  return (text, option) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : refuse(option, expected, text);
  };
}

/** Parses `10`, `0.5` or `.5`. Returns NaN for any other text. */
const decimal = (text: string): number => (/^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN);

/** Parses a number from 0 to 1. */
export const rate: Read<number> = (text, option) => {
  const value = decimal(text);
  return value >= 0 && value <= 1 ? value : refuse(option, "a rate from 0 to 1", text);
};

/** Parses a number above 0. */
export const milliseconds: Read<number> = (text, option) => {
  const value = decimal(text);
  return value > 0 ? value : refuse(option, "milliseconds above 0", text);
};

/** Parses one of the known words. */
export function oneOf<T extends string>(...known: readonly T[]): Read<T> {
  const expected = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  return (text, option) => known.find((each) => each === text) ?? refuse(option, expected, text);
}

/** Parses node ids, such as `7` or `1,15,9`. */
export const nodeList: Read<NodeId[]> = (text, option) => {
  const ids = text.split(",").map((part) => (/^\s*\d{1,15}\s*$/.test(part) ? Number(part) : null));
  const known = ids.filter((id) => id !== null);
  return known.length === ids.length ? known : refuse(option, "node ids such as 1,15,9", text);
};

/** Parses node ids, or `all`. */
export const nodesOrAll: Read<Nodes> = (text, option) => {
  if (text === "all") return "all";
  return /^[\d,\s]+$/.test(text) ? nodeList(text, option) : refuse(option, "node ids such as 1,2, or all", text);
};

export const jsonObject: Read<object> = (text, option) => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as object) : refuse(option, 'a JSON object such as {"maxDelayMs":10}', text);
};

/** Parses a delay: `10`, `1..10`, `normal:10,2` (mean, deviation) or `lognormal:10,0.5` (median, sigma). */
export const delay: Read<Delay> = (text, option) => {
  const [, kind, from, to] = /^(normal:|lognormal:|)(\d*\.?\d+)(?:(?:\.\.|,)(\d*\.?\d+))?$/.exec(text) ?? [];
  const made = delayFrom(kind, Number(from), to === undefined ? null : Number(to), text.includes(".."));
  if (made === null) return refuse(option, "such as 10, 1..10, normal:10,2 or lognormal:10,0.5, in milliseconds", text);
  requireDelay(made, option);
  return made;
};

function delayFrom(kind: string | undefined, first: number, second: number | null, isRange: boolean): Delay | null {
  if (kind === "" && second === null) return first;
  if (kind === "" && second !== null && isRange) return [first, second];
  if (second === null || isRange) return null;
  if (kind === "normal:") return { normal: { meanMs: first, deviationMs: second } };
  return kind === "lognormal:" ? { logNormal: { medianMs: first, sigma: second } } : null;
}

/** Returns the command-line flag of an option, such as `--max-states` for `maxStates`. */
export const flagOf = (name: string): string =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
