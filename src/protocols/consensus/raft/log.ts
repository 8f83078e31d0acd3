/** The log (§5.3): entries with their terms, journalled when they are appended or truncated. */
import type { Context } from "../../../core/protocol.ts";
import { configurationAt } from "./membership-changes.ts";
import type { Entry, Log, Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Ctx = Context<Raft>;

export const lastIndex = ({ offset, entries }: Log): number => offset + entries.length;
export const lastTerm = ({ offsetTerm, entries }: Log): number => entries.at(-1)?.term ?? offsetTerm;

/** @returns null if the entry is not in the log, or has been compacted. */
export function termAt({ offset, offsetTerm, entries }: Log, index: number): number | null {
  if (index === offset) return offsetTerm;
  return entries[index - offset - 1]?.term ?? null;
}

export const entryAt = ({ offset, entries }: Log, index: number): Entry | undefined => entries[index - offset - 1];

/** @returns the entries from `index` on that fit in one message, and at least one if there is any. */
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

/** Counts the uncommitted characters, which `maxUncommittedChars` bounds. A leader updates the count from here. */
export function uncommittedCharsOf({ log, commitIndex }: State): number {
  let chars = 0;
  for (let at = commitIndex + 1; at <= lastIndex(log); at++) chars += charsOf(entryAt(log, at) as Entry);
  return chars;
}

/** @returns the last index, at most `index`, with an entry of this term; null if the log has none. */
export function lastOfTerm(log: Log, term: number, index: number): number | null {
  for (let at = Math.min(index, lastIndex(log)); at >= log.offset; at--) {
    const found = termAt(log, at) as number;
    if (found === term) return at;
    if (found < term) return null; // Terms never decrease.
  }
  return null;
}

/** @returns the first index with the same term as the entry at `index`. */
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

/** A node uses the latest configuration in its log, committed or not (§6). */
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
