/** Formats a trace as text, one line per entry. Golden tests compare the text, and terminals show it. */
import { Chunk } from "../core/chunk.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId, Tagged, View } from "../core/protocol.ts";
import { pathOf, unwrapped } from "../core/wrapping.ts";
import type { LossReason, MessageId, TraceEntry } from "./entry.ts";

/** Formats one entry as a line such as `   180.0  node 4  sends election to 7`. Times are in milliseconds. */
export function logLine(entry: TraceEntry): string {
  return line(entry, actionText(entry));
}

const line = ({ at, node }: TraceEntry, words: string): string =>
  `${at.toFixed(1).padStart(8)}  node ${node}  ${words}`;

/**
 * Returns a function that works like `logLine` for the entries of one run, in order. For a lost message, the line also
 * names the message and the node at its other end.
 */
export function runLogger(): (entry: TraceEntry) => string {
  const underWay = new Map<MessageId, Extract<TraceEntry, { kind: "send" }>>();
  return (entry) => {
    if (entry.kind === "send") underWay.set(entry.id, entry);
    const sent = entry.kind === "lost" ? underWay.get(entry.id) : undefined;
    if (entry.kind === "receive" || entry.kind === "lost") underWay.delete(entry.id);
    return entry.kind === "lost" && sent !== undefined ? line(entry, loss(entry, sent)) : logLine(entry);
  };
}

function loss(
  { to, why }: Extract<TraceEntry, { kind: "lost" }>,
  sent: { node: NodeId; message: { type: string } },
): string {
  return `message lost: ${phrase(sent.message)} from ${sent.node} to ${to} (${lossWords(why)})`;
}

/** Describes an entry, such as `sends election to 7`, without naming its node. */
export function actionText(entry: TraceEntry): string {
  switch (entry.kind) {
    case "start":
      return "starts";
    case "crash":
      return entry.withinStep === true ? "crashes within this step" : "crashes";
    case "send":
      return `sends ${phrase(entry.message)} to ${entry.to}`;
    case "receive":
      return `receives ${phrase(entry.message)} from ${entry.from}`;
    case "lost":
      return `message lost, to ${entry.to} (${lossWords(entry.why)})`;
    case "timeout":
      return `times out: ${entry.timer}`;
    case "command":
      return `receives command ${phrase(entry.command)}`;
    case "event":
      return `emits ${phrase(entry.event)}${entry.until === undefined ? "" : `, valid until ${entry.until} runs out`}`;
    case "choice":
      return `chooses ${entry.label}: ${plain(entry.option)}`;
    case "pause":
      return "pauses";
    case "resume":
      return "resumes";
    case "fault":
      return `fault: ${entry.what}`;
    case "gap":
      return `(${entry.dropped} entries are missing)`;
    case "view":
      return `is now ${entry.view.role}${standing(entry.view)}`;
  }
}

function standing({ leader, held = [], certificates = [] }: View): string {
  const led = leader === undefined ? "" : `, leader ${leader ?? "unknown"}`;
  const waiting = held.length === 0 ? "" : `, ${held.join(" ")} held back`;
  const proved = certificates.map(({ of, signed, needed }) => `, ${of}: ${filling({ signed, needed })}`).join("");
  return `${led}${waiting}${proved}`;
}

/**
 * Describes a certificate, such as `2 of 3 (0 2)`: how many signatures it has, how many it needs, and which nodes
 * signed it.
 */
function filling({ signed, needed }: { readonly signed: readonly NodeId[]; readonly needed: number }): string {
  return signed.length === 0 ? `0 of ${needed}` : `${signed.length} of ${needed} (${signed.join(" ")})`;
}

/**
 * Formats a value as its type, with its part, followed by its fields, such as `election`, `alive beat 3` or
 * `election.coordinator`.
 */
export function phrase(said: Tagged): string {
  const { type: _type, ...fields } = unwrapped(said);
  return [pathOf(said).join("."), ...Object.entries(fields).map(([name, value]) => `${name} ${plain(value)}`)].join(
    " ",
  );
}

const plain = (value: unknown): string => (typeof value === "string" ? value : canonical(withSizes(value)));

/** Replaces the bytes in each chunk with their size. */
function withSizes(value: unknown): unknown {
  if (value instanceof Chunk) return `${value.length} bytes`;
  if (Array.isArray(value)) return value.map(withSizes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withSizes(inner)]));
}

/** The name of a message, timer or event. */
export interface Name {
  /** The full name, which is unique within the protocol, such as `election.answer`. */
  readonly full: string;
  /** The protocol's own name, such as `answer`. */
  readonly short: string;
  /** The part of the assembly, such as `election`. Null if the protocol is not an assembly. */
  readonly part: string | null;
}

/** Returns the name of a value, given its `type`. */
export const nameOf = (tagged: Tagged): Name => nameFrom(pathOf(tagged));

/** Returns the name of a timer or command, given as a dotted string. */
export function nameOfWord(word: string): Name {
  return nameFrom(word.split("."));
}

function nameFrom(path: readonly string[]): Name {
  const part = path.slice(0, -1).join(".");
  return { full: path.join("."), short: path.at(-1) ?? "", part: part === "" ? null : part };
}

/** Returns the fields other than the type. */
export function fieldsOf(tagged: Tagged): Record<string, unknown> {
  const { type: _type, ...fields } = unwrapped(tagged);
  return fields;
}

/**
 * Returns the id of the message that an event delivers to the application. A message is delivered later than it is
 * received.
 */
export function deliveredId(event: Tagged): string | null {
  const { type, id } = unwrapped(event);
  return type === "delivered" && typeof id === "string" ? id : null;
}

/**
 * Formats the name and fields as a short label, such as `elected 3`, `prepare 1.0` or `delivered 2 hello`, with at most
 * `maxLength` characters.
 */
export function labelOf(tagged: Tagged, maxLength = 28): string {
  const values = Object.values(fieldsOf(tagged)).map((value) => valueText(value, unitsOf(maxLength)));
  return shortened([nameOf(tagged).short, ...values].filter((word) => word !== "").join(" "), maxLength);
}

/** Shortens a text to `maxLength` characters, ending in an ellipsis. */
export function shortened(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text; // A text never has more letters than code units.
  const letters = [...text.slice(0, unitsOf(maxLength))];
  return letters.length <= maxLength ? text : `${letters.slice(0, maxLength - 1).join("")}…`;
}

/**
 * Returns a number of code units that always contains at least one letter more than the limit, so anything beyond it is
 * never shown.
 */
const unitsOf = (letters: number): number => 2 * (letters + 1);

/** Describes why a message was lost, in a word or two. */
export const lossWords = (why: LossReason): string => (why === "down" ? "not running" : why);

/**
 * Formats a value. Stamps such as a ballot become `1.0`, vectors become `[1 0 2]`, and missing values become `–`. Long
 * text is shortened.
 */
export function valueText(value: unknown, most: number): string {
  if (value === null || value === undefined) return "–";
  const inner = (part: unknown): string => valueText(part, most);
  if (Array.isArray(value)) return `[${value.map(inner).join(" ")}]`;
  if (typeof value === "string") return value.length > most ? value.slice(0, most) : value;
  if (typeof value !== "object") return JSON.stringify(value);
  const parts = Object.values(value);
  return parts.map(inner).join(parts.every((part) => typeof part === "number") ? "." : " ");
}
