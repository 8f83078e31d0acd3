/** Values as people write them: on a command line, in a form. */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Nodes } from "./scenario/schema.ts";

/** @param word what it is the value of, for the error. @throws UsageError */
export type Read<T> = (text: string, word: string) => T;

export function refuse(word: string, expected: string, text: string): never {
  throw new UsageError("bad-argument", unexpected(word, expected, text));
}

export function wholeNumber(min: number, max: number, expected = `a whole number from ${min} to ${max}`): Read<number> {
  return (text, word) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : refuse(word, expected, text);
  };
}

/** `10`, `0.5` or `.5`. */
const decimal = (text: string): number => (/^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN);

export const rate: Read<number> = (text, word) => {
  const value = decimal(text);
  return value >= 0 && value <= 1 ? value : refuse(word, "a rate from 0 to 1", text);
};

export const milliseconds: Read<number> = (text, word) => {
  const value = decimal(text);
  return value > 0 ? value : refuse(word, "milliseconds above 0", text);
};

export function oneOf<T extends string>(...known: readonly T[]): Read<T> {
  const expected = `${known.slice(0, -1).join(", ")} or ${known.at(-1)}`;
  return (text, word) => known.find((each) => each === text) ?? refuse(word, expected, text);
}

/** `7` or `1,15,9`. */
export const nodeList: Read<NodeId[]> = (text, word) => {
  const ids = text.split(",").map((part) => (/^\s*\d{1,15}\s*$/.test(part) ? Number(part) : null));
  const known = ids.filter((id) => id !== null);
  return known.length === ids.length ? known : refuse(word, "node ids such as 1,15,9", text);
};

/** The same, or `all`. */
export const nodesOrAll: Read<Nodes> = (text, word) => {
  if (text === "all") return "all";
  return /^[\d,\s]+$/.test(text) ? nodeList(text, word) : refuse(word, "node ids such as 1,2, or all", text);
};

export const jsonObject: Read<object> = (text, word) => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as object) : refuse(word, 'a JSON object such as {"maxDelayMs":10}', text);
};
