/** A trace in words, one line per entry: what golden tests compare and a terminal shows. */
import { Chunk } from "../core/chunk.ts";
import { canonical } from "../core/plain.ts";
import type { NodeId, Tagged, View } from "../core/protocol.ts";
import { pathOf, unwrapped } from "../core/wrapping.ts";
import type { MessageId, TraceEntry } from "./entry.ts";
import { lossWords } from "./naming.ts";

/** One entry as a line such as `   180.0  node 4  sends election to 7`. Times are in milliseconds. */
export function logLine(entry: TraceEntry): string {
  return line(entry, actionText(entry));
}

const line = ({ at, node }: TraceEntry, words: string): string =>
  `${at.toFixed(1).padStart(8)}  node ${node}  ${words}`;

/** The same for the entries of one run, in order: the loss of a message then names it and its other end. */
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

/** What happens at a node, without its id: `sends election to 7`. */
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

/** `2 of 3 (0 2)`: how full a certificate is, and who has signed. */
function filling({ signed, needed }: { readonly signed: readonly NodeId[]; readonly needed: number }): string {
  return signed.length === 0 ? `0 of ${needed}` : `${signed.length} of ${needed} (${signed.join(" ")})`;
}

/** `election`, `alive beat 3`, `election.coordinator`: type and fields; those of a part of an assembly carry its name. */
export function phrase(said: Tagged): string {
  const { type: _type, ...fields } = unwrapped(said);
  return [pathOf(said).join("."), ...Object.entries(fields).map(([name, value]) => `${name} ${plain(value)}`)].join(
    " ",
  );
}

const plain = (value: unknown): string => (typeof value === "string" ? value : canonical(withSizes(value)));

/** Of a chunk its size is shown, not its bytes. */
function withSizes(value: unknown): unknown {
  if (value instanceof Chunk) return `${value.length} bytes`;
  if (Array.isArray(value)) return value.map(withSizes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withSizes(inner)]));
}
