/** Reads and writes an algorithm's options, which are a single JSON object in the link. */
import type { OptionField } from "./engine/answers.ts";
import { MAX_NODES } from "./engine/limits.ts";

type Options = Readonly<Record<string, unknown>>;

const isOptions = (value: unknown): value is Options =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Parses options. Returns an empty object if the text is not a JSON object. */
function optionsIn(text: string): Options {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return isOptions(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Returns the nodes that a form offers for a given number of nodes. Returns no nodes if the laboratory cannot run that
 * many.
 */
export function offeredNodes(count: string | number): number[] {
  const length = Number(count);
  const isCount = Number.isInteger(length) && length >= 0 && length <= MAX_NODES;
  return isCount ? Array.from({ length }, (_, node) => node) : [];
}

/** Parses the distinct nodes in a list such as `0,2`. Invalid items are omitted. */
export const nodesIn = (text: string): number[] => [
  ...new Set(text.split(",").flatMap((part) => (/^\s*\d+\s*$/.test(part) ? [Number(part)] : []))),
];

/** Returns the value at a path, or undefined if it is not set. */
export function optionAt(text: string, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isOptions(inner) ? inner[name] : undefined), optionsIn(text));
}

/** Sets the value at a path. Undefined removes the value, along with any parts that become empty. */
export function withOption(text: string, path: readonly string[], value: unknown): string {
  const changed = changedAt(optionsIn(text), path, value);
  return changed === undefined ? "" : JSON.stringify(changed);
}

function changedAt(within: unknown, [name, ...inner]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  const options = isOptions(within) ? within : {};
  const { [name]: before, ...others } = options;
  const own = changedAt(before, inner, value);
  const changed = own === undefined ? others : { ...others, [name]: own };
  return Object.keys(changed).length === 0 ? undefined : changed;
}

/** Formats a value for its input field. */
export function fieldText({ kind }: Pick<OptionField, "kind">, value: unknown): string {
  if (value === undefined) return "";
  if (kind === "nodes" && Array.isArray(value)) return value.join(",");
  return typeof value === "string" && kind !== "json" ? value : JSON.stringify(value);
}

/** Parses a field's text. Returns undefined if it is empty or invalid. */
export function fieldValue({ kind }: Pick<OptionField, "kind">, text: string): unknown {
  if (text.trim() === "") return undefined;
  switch (kind) {
    case "whole":
    case "number":
      return Number.isFinite(Number(text)) ? Number(text) : undefined;
    case "switch":
      return text === "true";
    case "nodes":
      return nodesIn(text);
    case "json":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return undefined;
      }
    default:
      return text;
  }
}

/** Splits an option's name into words and a unit: `maxBackOffMs` becomes `max back off`, in ms. */
export function fieldName(name: string): { readonly words: string; readonly unit: string } {
  const [, stem = name, unit = ""] = /^(.+?)(Ms)?$/.exec(name) ?? [];
  return { words: stem.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), unit: unit.toLowerCase() };
}
