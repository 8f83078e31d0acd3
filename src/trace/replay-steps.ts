/** A recording cut into steps: each stimulus of a node with what its handler was seen to do. */
import type { Vocabulary } from "../core/protocol.ts";
import type { Stimulus } from "../core/step.ts";
import type { MessageId, TraceEntry } from "./entry.ts";

type EntryOf<V extends Vocabulary, K extends TraceEntry["kind"]> = Extract<TraceEntry<V>, { kind: K }>;

/** What the recording says of one step, beside its stimulus. */
export interface RecordedStep<V extends Vocabulary> {
  readonly sends: EntryOf<V, "send">[];
  readonly events: EntryOf<V, "event">[];
  readonly replies: EntryOf<V, "event">[];
  readonly choices: EntryOf<V, "choice">[];
  /** The node's state after the step, where it was recorded. */
  view: EntryOf<V, "view"> | null;
  /** What ended the entries of the step early, if anything did: then some may be missing. */
  cut: "crash" | "end" | null;
}

export interface Recording<V extends Vocabulary> {
  /** The steps, by the index of their stimulus. */
  readonly steps: ReadonlyMap<number, RecordedStep<V>>;
  /** How often each message was received or lost, and whether it was ever sent and received, as far as was recorded. */
  readonly ends: ReadonlyMap<MessageId, number>;
  readonly sent: ReadonlySet<MessageId>;
  readonly received: ReadonlySet<MessageId>;
}

export function recordingOf<V extends Vocabulary>(entries: readonly TraceEntry<V>[]): Recording<V> {
  const steps = new Map<number, RecordedStep<V>>();
  const open = new Map<number, RecordedStep<V>>();
  const ends = new Map<MessageId, number>();
  const [sent, received] = [new Set<MessageId>(), new Set<MessageId>()];
  for (const [index, entry] of entries.entries()) {
    const { node } = entry;
    if (entry.kind === "receive") received.add(entry.id);
    if (entry.kind === "receive" || entry.kind === "lost") ends.set(entry.id, (ends.get(entry.id) ?? 0) + 1);
    if (entry.kind === "send") sent.add(entry.id);
    if (stimulusOf(entry) !== null) {
      const step: RecordedStep<V> = { sends: [], events: [], replies: [], choices: [], view: null, cut: "end" };
      const before = open.get(node);
      if (before !== undefined) before.cut = null;
      steps.set(index, step);
      open.set(node, step);
      continue;
    }
    const step = open.get(node);
    if (step !== undefined) take(step, entry, () => open.delete(node));
  }
  return { steps, ends, sent, received };
}

function take<V extends Vocabulary>(step: RecordedStep<V>, entry: TraceEntry<V>, close: () => void): void {
  switch (entry.kind) {
    case "send":
      return void step.sends.push(entry);
    case "event":
      return void (entry.request === undefined ? step.events : step.replies).push(entry);
    case "choice":
      return void step.choices.push(entry);
    case "view":
      step.view = entry;
      return;
    case "crash":
    case "gap":
      step.cut = "crash";
      return close();
    default:
      return;
  }
}

/** What an entry makes a handler do; null for an entry that makes none. */
export function stimulusOf<V extends Vocabulary>(entry: TraceEntry<V>): Stimulus<V> | null {
  switch (entry.kind) {
    case "start":
      return { kind: "start" };
    case "receive":
      return { kind: "receive", from: entry.from, message: entry.message };
    case "timeout":
      return { kind: "timeout", timer: entry.timer };
    case "command":
      return { kind: "command", command: entry.command };
    default:
      return null;
  }
}
