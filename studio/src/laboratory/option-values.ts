/** The options of an algorithm as their fields read and write them: in the link they are one JSON object. */
import type { OptionField } from "./engine/answers.ts";
import { MAX_NODES } from "./engine/limits.ts";

type Options = Readonly<Record<string, unknown>>;

const isOptions = (value: unknown): value is Options =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** None where what is written is no object. */
function optionsIn(text: string): Options {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text);
    return isOptions(value) ? value : {};
  } catch {
    return {};
  }
}

/** Nodes that a form offers for a written number of nodes; none if the laboratory does not run so many. */
export function offeredNodes(count: string | number): number[] {
  const length = Number(count);
  const isCount = Number.isInteger(length) && length >= 0 && length <= MAX_NODES;
  return isCount ? Array.from({ length }, (_, node) => node) : [];
}

/** The nodes of a list such as `0,2`, each once. What is no node is left out. */
export const nodesIn = (text: string): number[] => [
  ...new Set(text.split(",").flatMap((part) => (/^\s*\d+\s*$/.test(part) ? [Number(part)] : []))),
];

/** What is given at a place; undefined: nothing. */
export function optionAt(text: string, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isOptions(inner) ? inner[name] : undefined), optionsIn(text));
}

/** The same with another value there; undefined takes it away, and parts that nothing is left of. */
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

/** As it stands in the field. */
export function fieldText({ kind }: Pick<OptionField, "kind">, value: unknown): string {
  if (value === undefined) return "";
  if (kind === "nodes" && Array.isArray(value)) return value.join(",");
  return typeof value === "string" && kind !== "json" ? value : JSON.stringify(value);
}

/** What stands in the field as a value; undefined: nothing, or nothing that can be read. */
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

/** `maxBackOffMs` as `max back off`, and the unit by itself. */
export function fieldName(name: string): { readonly words: string; readonly unit: string } {
  const [, stem = name, unit = ""] = /^(.+?)(Ms)?$/.exec(name) ?? [];
  return { words: stem.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`), unit: unit.toLowerCase() };
}
