/** The marks of a step on its node's life line, with the text next to them. */
import type { NodeId, View } from "../../core/protocol.ts";
import type { TraceEntry } from "../entry.ts";
import { faultText } from "../link-model.ts";
import { deliveredId, labelOf, nameOfWord, shortened, valueText } from "../log.ts";

export type MarkKind = "start" | "crash" | "timeout" | "command" | "event" | "delivery" | "choice" | "fault" | "gap";

export interface Inscription {
  readonly marks: readonly MarkKind[];
  /** The meanings of the marks, in the same order. */
  readonly words: string;
  /** The ids of the delivered messages, in order. They are printed in bold. */
  readonly delivered: string;
  /** The node's new role. It is printed in italics. */
  readonly role: string;
  /** Whether the step sends or receives a message. */
  readonly hasMessages: boolean;
}

const MAX_WORDS = 44;
const MAX_WORD = 30;

/** Returns the marks and labels for the entries of one step. `view`: the node's view before the step. */
export function inscriptionOf(entries: readonly TraceEntry[], view: View | null): Inscription {
  const marks: MarkKind[] = [];
  const words: string[] = [];
  const delivered: string[] = [];
  let role = "";
  for (const entry of entries) {
    const told = mark(entry);
    if (told !== null) marks.push(told.kind);
    if (told !== null && told.word !== "") (told.kind === "delivery" ? delivered : words).push(told.word);
    if (entry.kind === "view") role = becoming(view, entry.view, entry.node, words.length > 0);
  }
  const has = (kind: TraceEntry["kind"]): boolean => entries.some((entry) => entry.kind === kind);
  return {
    marks,
    words: shortened(words.join(" · "), MAX_WORDS),
    delivered: shortened(delivered.join(", "), MAX_WORDS),
    role,
    hasMessages: has("send") || has("receive"),
  };
}

function mark(entry: TraceEntry): { kind: MarkKind; word: string } | null {
  switch (entry.kind) {
    case "start":
    case "crash":
      return { kind: entry.kind, word: "" };
    case "timeout":
      return { kind: "timeout", word: `timeout: ${nameOfWord(entry.timer).short}` };
    case "command":
      return { kind: "command", word: labelOf(entry.command, MAX_WORD) };
    case "event": {
      const delivered = deliveredId(entry.event);
      if (delivered !== null) return { kind: "delivery", word: shortened(delivered, MAX_WORD) };
      return { kind: "event", word: labelOf(entry.event, MAX_WORD) };
    }
    case "choice":
      return { kind: "choice", word: shortened(`${entry.label}: ${optionText(entry.option)}`, MAX_WORD) };
    case "fault":
      return { kind: "fault", word: shortened(faultText(entry.what), MAX_WORD) };
    case "gap":
      return { kind: "gap", word: `${entry.dropped} entries missing` };
    default:
      return null;
  }
}

/** Returns the parts of a step's label, each with its style. */
export function partsOf({
  words,
  delivered,
  role,
  clock,
}: Inscription & { readonly clock: string }): { style: "word" | "delivered" | "role" | "clock"; text: string }[] {
  return [
    { style: "word" as const, text: words },
    { style: "delivered" as const, text: delivered },
    { style: "role" as const, text: role },
    { style: "clock" as const, text: clock },
  ].filter(({ text }) => text !== "");
}

export const SEPARATOR = " · ";

const optionText = (option: unknown): string => (typeof option === "string" ? option : valueText(option, MAX_WORD));

/**
 * Describes how a view has changed: a new role, a new term, or a new leader that the node follows, unless an event
 * reports it.
 */
export function becoming(before: View | null, after: View, node: NodeId, isTold: boolean): string {
  const term = after.term !== undefined && after.term !== before?.term ? ` (term ${after.term})` : "";
  if (before === null || before.role !== after.role || term !== "") return `${after.role}${term}`;
  if (after.leader === before.leader || isTold) return "";
  if (after.leader === node) return "leading";
  return typeof after.leader === "number" ? `following ${after.leader}` : "without a leader";
}

/** SVG paths, relative to the mark's position on the life line. */
export const markPaths: Readonly<Record<MarkKind, string>> = {
  /** A bar across the start of the line. */
  start: "M0 -7V7",
  crash: "M-6 -6L6 6M6 -6L-6 6",
  /** A clock. */
  timeout: "M0 -6A6 6 0 1 1 0 6A6 6 0 1 1 0 -6ZM0 -3.6V0L2.8 1.8",
  /** An arrowhead pointing at the line from outside. */
  command: "M-5.5 -12H5.5L0 -2Z",
  /** A pennant. */
  event: "M0 0V-13.5L8.5 -10L0 -6.5",
  /** An arrow pointing up from the line toward the application: the message is delivered. */
  delivery: "M0 -1V-13.5M-4.8 -8.2L0 -13.5L4.8 -8.2",
  choice: "M0 -6L6 0L0 6L-6 0Z",
  /** A lightning bolt. */
  fault: "M2.5 -12L-4 -3.5H0.5L-2.5 4.5L5 -5H0.5Z",
  gap: "M-7 0L-4 -5L0 5L4 -5L7 0",
};

/** The spacing between marks that belong to the same step. */
export const MARK_PITCH = 14;
