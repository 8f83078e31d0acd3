/** The log (§5.3): entries with their terms. Appending and truncating are journaled. */
import type { Context } from "../../../core/protocol.ts";
import { configurationAt } from "./membership-changes.ts";
import type { Entry, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

/** Returns the index of the last entry. */
export const lastIndex = ({ offset, entries }: Log): number => offset + entries.length;
/** Returns the term of the last entry. */
export const lastTerm = ({ offsetTerm, entries }: Log): number => entries.at(-1)?.term ?? offsetTerm;

/** Returns the term of an entry. Null if the log does not contain it or it has been compacted. */
export function termAt({ offset, offsetTerm, entries }: Log, index: number): number | null {
  if (index === offset) return offsetTerm;
  return entries[index - offset - 1]?.term ?? null;
}

/** Returns the entry at an index. Undefined if the log does not contain it. */
export const entryAt = ({ offset, entries }: Log, index: number): Entry | undefined => entries[index - offset - 1];

/** Returns the entries starting at `index` that fit in one message, but at least one if there are any. */
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

/** Returns the size of an entry in characters, for the limits on batches. */
export const charsOf = (entry: Entry): number => (entry.type === "command" ? entry.command.operation.length : 0);

/**
 * Counts the characters in uncommitted entries, which `maxUncommittedChars` limits. A new leader starts with this count
 * and keeps it up to date.
 */
export function uncommittedCharsOf({ log, commitIndex }: State): number {
  let chars = 0;
  for (let at = commitIndex + 1; at <= lastIndex(log); at++) chars += charsOf(entryAt(log, at) as Entry);
  return chars;
}

/** Returns the last index up to `index` that has an entry of this term. Null if there is none. */
export function lastOfTerm(log: Log, term: number, index: number): number | null {
  for (let at = Math.min(index, lastIndex(log)); at >= log.offset; at--) {
    const found = termAt(log, at) as number;
    if (found === term) return at;
    if (found < term) return null; // Terms never decrease.
  }
  return null;
}

/** Returns the first index with the same term as the entry at `index`. */
export function firstOfTerm(log: Log, index: number): number {
  const term = termAt(log, index);
  let first = index;
  while (first > log.offset + 1 && termAt(log, first - 1) === term) first -= 1;
  return first;
}

/** Journals entries and appends them. */
export function append(state: State, entries: Entry[], ctx: Ctx): void {
  ctx.persist({ type: "appended", entries });
  take(state, entries);
}

/**
 * Adds entries to the log in memory. A node uses the latest configuration in its log, whether it is committed or not
 * (§6).
 */
export function take(state: State, entries: readonly Entry[]): void {
  for (const entry of entries) {
    state.log.entries.push(entry);
    if (entry.type === "configuration") state.configuration = { ...entry.configuration, index: lastIndex(state.log) };
  }
}

/** Truncates the log after `index`, and journals the truncation. */
export function truncate(state: State, index: number, ctx: Ctx): void {
  ctx.persist({ type: "truncated", lastIndex: index });
  cut(state, index);
}

/** Drops all entries after `index`. */
export function cut(state: State, index: number): void {
  const { log } = state;
  log.entries.length = Math.max(0, Math.min(log.entries.length, index - log.offset));
  if (state.configuration.index > index) state.configuration = configurationAt(state, index);
}
