/** What messages, commands and events are called, with the names of the parts of an assembly that said them. */
import type { Tagged } from "../core/protocol.ts";
import { pathOf, unwrapped } from "../core/wrapping.ts";
import type { LossReason } from "./entry.ts";

export interface Name {
  /** Unique among all: `election.answer`. */
  readonly full: string;
  /** The protocol's own word: `answer`. */
  readonly short: string;
  /** The part that said it, `election`; null where the node runs one protocol alone. */
  readonly part: string | null;
}

export const nameOf = (tagged: Tagged): Name => nameFrom(pathOf(tagged));

/** The name of a timer or command that comes as one dotted word. */
export function nameOfWord(word: string): Name {
  return nameFrom(word.split("."));
}

function nameFrom(path: readonly string[]): Name {
  const part = path.slice(0, -1).join(".");
  return { full: path.join("."), short: path.at(-1) ?? "", part: part === "" ? null : part };
}

/** The fields of what was said, besides its type. */
export function fieldsOf(tagged: Tagged): Record<string, unknown> {
  const { type: _type, ...fields } = unwrapped(tagged);
  return fields;
}

/** Which message an event says to be delivered: handed over to the application, which is later than its reception. */
export function deliveredId(event: Tagged): string | null {
  const { type, id } = unwrapped(event);
  return type === "delivered" && typeof id === "string" ? id : null;
}

/** Name and fields in a few words: `elected 3`, `prepare 1.0`, `delivered 2 hello`. At most so many characters. */
export function labelOf(tagged: Tagged, maxLength = 28): string {
  const values = Object.values(fieldsOf(tagged)).map((value) => valueText(value, unitsOf(maxLength)));
  return shortened([nameOf(tagged).short, ...values].filter((word) => word !== "").join(" "), maxLength);
}

export function shortened(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text; // Its letters are no more than its code units.
  const letters = [...text.slice(0, unitsOf(maxLength))];
  return letters.length <= maxLength ? text : `${letters.slice(0, maxLength - 1).join("")}…`;
}

/** So many code units hold one letter more than that at least: what comes behind them is not shown. */
const unitsOf = (letters: number): number => 2 * (letters + 1);

/** Why a message was lost, in a word or two. */
export const lossWords = (why: LossReason): string => (why === "down" ? "not running" : why);

/** Stamps such as a ballot read `1.0`, vectors `[1 0 2]`, what is absent `–`. Of a long text the beginning. */
export function valueText(value: unknown, most: number): string {
  if (value === null || value === undefined) return "–";
  const inner = (part: unknown): string => valueText(part, most);
  if (Array.isArray(value)) return `[${value.map(inner).join(" ")}]`;
  if (typeof value === "string") return value.length > most ? value.slice(0, most) : value;
  if (typeof value !== "object") return JSON.stringify(value);
  const parts = Object.values(value);
  return parts.map(inner).join(parts.every((part) => typeof part === "number") ? "." : " ");
}
