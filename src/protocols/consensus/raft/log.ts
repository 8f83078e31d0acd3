/** The log (§5.3): entries with their terms, journalled as they are appended and truncated. */
import type { Context } from "../../../core/protocol.ts";
import { configurationAt } from "./membership-changes.ts";
import type { Entry, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

export const lastIndex = ({ offset, entries }: Log): number => offset + entries.length;
export const lastTerm = ({ offsetTerm, entries }: Log): number => entries.at(-1)?.term ?? offsetTerm;

/** Null if the entry is not there, or no longer. */
export function termAt({ offset, offsetTerm, entries }: Log, index: number): number | null {
  if (index === offset) return offsetTerm;
  return entries[index - offset - 1]?.term ?? null;
}

export const entryAt = ({ offset, entries }: Log, index: number): Entry | undefined => entries[index - offset - 1];

/** Entries from `index` on, as far as one message may hold them, and at least one if there is one. */
export function batchFrom(log: Log, index: number, maxEntries: number, maxChars: number): Entry[] {
  const batch: Entry[] = [];
  let chars = 0;
  for (let at = index; batch.length < maxEntries; at++) {
    const entry = entryAt(log, at);
    if (entry === undefined) break;
    chars += charsOf(entry);
    if (batch.length > 0 && chars > maxChars) break;
    batch.push(entry);
  }
  return batch;
}

export const charsOf = (entry: Entry): number => (entry.type === "command" ? entry.command.operation.length : 0);

/** What a leader bounds (`maxUncommittedChars`). It counts on from here while it leads. */
export function uncommittedCharsOf({ log, commitIndex }: State): number {
  let chars = 0;
  for (let at = commitIndex + 1; at <= lastIndex(log); at++) chars += charsOf(entryAt(log, at) as Entry);
  return chars;
}

/** The last index whose entry is of this term, from `index` down; null if there is none in the log. */
export function lastOfTerm(log: Log, term: number, index: number): number | null {
  for (let at = Math.min(index, lastIndex(log)); at >= log.offset; at--) {
    const found = termAt(log, at) as number;
    if (found === term) return at;
    if (found < term) return null; // Terms only grow.
  }
  return null;
}

/** The first index that is of the same term as the entry at `index`. */
export function firstOfTerm(log: Log, index: number): number {
  const term = termAt(log, index);
  let first = index;
  while (first > log.offset + 1 && termAt(log, first - 1) === term) first -= 1;
  return first;
}

export function append(state: State, entries: Entry[], ctx: Ctx): void {
  ctx.persist({ type: "appended", entries });
  take(state, entries);
}

/** A node uses the last configuration in its log, whether it is committed or not (§6). */
export function take(state: State, entries: readonly Entry[]): void {
  for (const entry of entries) {
    state.log.entries.push(entry);
    if (entry.type === "configuration") state.configuration = { ...entry.configuration, index: lastIndex(state.log) };
  }
}

export function truncate(state: State, index: number, ctx: Ctx): void {
  ctx.persist({ type: "truncated", lastIndex: index });
  cut(state, index);
}

export function cut(state: State, index: number): void {
  const { log } = state;
  log.entries.length = Math.max(0, Math.min(log.entries.length, index - log.offset));
  if (state.configuration.index > index) state.configuration = configurationAt(state, index);
}
