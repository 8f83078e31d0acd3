/** Keys and values in named maps, transactions on several keys, and the recent changes that watches need. */
import type {
  Answer,
  Change,
  Comparison,
  KeyEntry,
  KeyOperation,
  Result,
  SessionId,
  Step,
  StepResult,
  Stored,
} from "./operations.ts";
import { MAX_VALUE_BYTES, refuse } from "./operations.ts";
import { type Applying, bytesOf, type Data, type Kept, type Limits, nextRevision } from "./state.ts";
import { emptyTable, enter, entriesOf, lookUp, strike, valuesOf } from "./table.ts";

/** The overhead per key and value, which consists of the revision, the session and JSON syntax. */
const ENTRY_BYTES = 64;
/** The size of the quotes around a string in JSON. */
const QUOTES = 2;

export function applyToKeys(on: Applying, session: SessionId, operation: KeyOperation): Result {
  if (operation.type !== "transaction") {
    const refused = hasRoomFor(on, operation) ? null : problemOf(on, [operation]);
    return refused ?? (carryOut(on, session, operation, nextRevisionIf(on.data, operation)) as Result);
  }
  const succeeded = operation.compare.every((comparison) => holds(on.data, comparison));
  const steps = succeeded ? operation.success : operation.failure;
  const refused = problemOf(on, steps) ?? answerProblem(on.data, steps);
  if (refused !== null) return refused;
  const revision = steps.some(isChange) ? nextRevision(on.data) : on.data.revision;
  return { type: "transaction", succeeded, results: steps.map((step) => carryOut(on, session, step, revision)) };
}

const isChange = ({ type }: Step): boolean => type !== "get";

/** Returns the next revision, or the current one if the step changes nothing because it deletes a missing key. */
function nextRevisionIf(data: Data, step: Step): number {
  const isVain = step.type === "delete" && stored(data, step.map, step.key) === null;
  return isVain ? data.revision : nextRevision(data);
}

/** Returns a key's value. Null if the key does not exist. */
export const stored = (data: Data, map: string, key: string): Stored | null => {
  const table = lookUp(data.maps, map);
  return table === null ? null : lookUp(table, key);
};

function holds(data: Data, comparison: Comparison): boolean {
  const entry = stored(data, comparison.map, comparison.key);
  return comparison.type === "revision"
    ? (entry?.revision ?? 0) === comparison.revision
    : entry?.value === comparison.value;
}

/**
 * Returns whether a step is certain to fit. Most steps are small enough that their bytes do not have to be counted,
 * because a UTF-16 unit takes at most six bytes.
 */
const hasRoomFor = ({ data, limits }: Applying, step: Step): boolean =>
  step.type !== "put" ||
  (data.bytes + ENTRY_BYTES + 2 * QUOTES + 6 * (step.key.length + step.value.length) <= limits.maxBytes &&
    lookUp(data.maps, step.map) !== null);

/**
 * Returns a refusal if there is not enough room for all puts. Call this before applying any of them. A change that does
 * not grow the state is always allowed.
 */
function problemOf({ data, limits }: Applying, steps: readonly Step[]): Result | null {
  const bytes = data.bytes + growthBy(data, steps);
  const names = new Set(steps.filter(({ type, map }) => type === "put" && lookUp(data.maps, map) === null).map(nameOf));
  if (bytes > limits.maxBytes && bytes > data.bytes)
    return refuse("full", `the service holds ${data.bytes} bytes; the maximum is ${limits.maxBytes}`);
  if (data.maps.size + names.size > limits.maxNames)
    return refuse("too-many", `there are ${data.maps.size} maps; the maximum is ${limits.maxNames}`);
  return null;
}

const nameOf = ({ map }: Step): string => map;

/**
 * Returns how much the state grows, in bytes. Steps are counted in order, because each replaces or deletes the value
 * left by earlier steps.
 */
function growthBy(data: Data, steps: readonly Step[]): number {
  const sizes = new Map<string, number>();
  let growth = 0;
  for (const step of steps) {
    if (step.type === "get") continue;
    const name = JSON.stringify([step.map, step.key]);
    const before = sizes.get(name) ?? sizeUnder(data, step.map, step.key);
    const after = step.type === "put" ? sizeOf(step.key, step.value) : 0;
    sizes.set(name, after);
    growth += after - before;
  }
  return growth;
}

function sizeUnder(data: Data, map: string, key: string): number {
  const entry = stored(data, map, key);
  return entry === null ? 0 : sizeOf(key, entry.value);
}

/** The maximum number of characters in the answer to a transaction. */
export const MAX_ANSWER_CHARS = 8_388_608;

/**
 * Returns a refusal if the answer would be too long. Each step returns the previous value, which may come from an
 * earlier step in the same transaction.
 */
function answerProblem(data: Data, steps: readonly Step[]): Result | null {
  if (steps.length * MAX_VALUE_BYTES <= MAX_ANSWER_CHARS) return null;
  const put = new Map<string, number>();
  let chars = 0;
  for (const step of steps) {
    const name = JSON.stringify([step.map, step.key]);
    chars += put.get(name) ?? stored(data, step.map, step.key)?.value.length ?? 0;
    if (step.type !== "get") put.set(name, step.type === "put" ? step.value.length : 0);
  }
  if (chars <= MAX_ANSWER_CHARS) return null;
  return refuse("too-large", `the answer to a transaction has at most ${MAX_ANSWER_CHARS} characters, got ${chars}`);
}

function carryOut(on: Applying, session: SessionId, step: Step, revision: number): StepResult {
  const { data } = on;
  if (step.type === "get") return { type: "found", entry: stored(data, step.map, step.key) };
  if (step.type === "delete") return { type: "stored", previous: remove(on, step.map, step.key, revision) };
  const { map, key, value, isLeased } = step;
  let table = lookUp(data.maps, map);
  if (table === null) {
    table = emptyTable<Stored>();
    enter(data.maps, map, table);
  }
  const previous = enter(table, key, { value, revision, session: isLeased ? session : null });
  const [keyBytes, valueBytes] = [bytesOf(key), bytesOf(value)];
  data.bytes += valueBytes - (previous === null ? -ENTRY_BYTES - keyBytes : bytesOf(previous.value));
  note(on, { revision, map, key, value }, keyBytes + valueBytes);
  return { type: "stored", previous };
}

function remove(on: Applying, map: string, key: string, revision: number): Stored | null {
  const { data } = on;
  const table = lookUp(data.maps, map);
  const previous = table === null ? null : strike(table, key);
  if (table === null || previous === null) return null;
  if (table.size === 0) strike(data.maps, map);
  data.bytes -= sizeOf(key, previous.value);
  note(on, { revision, map, key, value: null }, bytesOf(key));
  return previous;
}

const sizeOf = (key: string, value: string): number => ENTRY_BYTES + bytesOf(key) + bytesOf(value);

/**
 * Stores a change for watches, and drops the oldest changes that exceed the limits. @param bytes the size of the
 * change's key and value
 */
function note({ data, limits, tell }: Applying, change: Change, bytes: number): void {
  const { kept } = data;
  kept.changes.push(change);
  kept.bytes += changeSize(change.map, bytes);
  if (isOver(kept.changes.length, limits.maxChanges) || isOver(kept.bytes, limits.maxChangeBytes))
    forgetOldest(kept, limits);
  tell({ type: "changed", ...change });
}

/**
 * Returns whether a count exceeds the limit by more than an eighth. Elements are removed in batches, because removing
 * one element from the front of a long list costs as much as removing many.
 */
const isOver = (count: number, most: number): boolean => count > most + Math.floor(most / 8);

function forgetOldest(kept: Kept, { maxChanges, maxChangeBytes }: Limits): void {
  let count = 0;
  for (; kept.changes.length - count > maxChanges || kept.bytes > maxChangeBytes; count++) {
    const oldest = kept.changes[count] as Change;
    kept.bytes -= changeSize(oldest.map, bytesOf(oldest.key) + (oldest.value === null ? 0 : bytesOf(oldest.value)));
    noteForgotten(kept, oldest);
  }
  kept.changes.splice(0, count);
}

/**
 * The number of maps for which dropped changes are tracked separately, so that changes to a busy map do not break
 * watches on a quiet one.
 */
const MAX_FORGOTTEN = 1_000;

function noteForgotten(kept: Kept, { map, revision }: Change): void {
  enter(kept.forgottenOf, map, revision);
  if (kept.forgottenOf.size <= MAX_FORGOTTEN) return;
  kept.forgotten = revision;
  kept.forgottenOf = emptyTable();
}

/** The maximum size that a single change counts for, so that the last two changes are always kept. */
const MAX_CHANGE_SIZE = 524_288;

const changeSize = (map: string, bytes: number): number =>
  Math.min(MAX_CHANGE_SIZE, ENTRY_BYTES + bytesOf(map) + bytes);

/** Deletes the keys that the session has leased. */
export function releaseKeys(on: Applying, session: SessionId): void {
  const tied: { map: string; key: string }[] = [];
  for (const [map, table] of entriesOf(on.data.maps))
    for (const [key, entry] of entriesOf(table)) if (entry.session === session) tied.push({ map, key });
  if (tied.length === 0) return;
  const revision = nextRevision(on.data);
  for (const { map, key } of tied) remove(on, map, key, revision);
}

/** Deletes a map without emitting events. */
export function forgetMap(data: Data, map: string): void {
  const table = lookUp(data.maps, map);
  if (table === null) return;
  for (const [key, { value }] of entriesOf(table)) data.bytes -= sizeOf(key, value);
  strike(data.maps, map);
}

/** Returns whether the session has any leased keys. */
export const holdsKeys = ({ maps }: Data, session: SessionId): boolean =>
  valuesOf(maps).some((table) => valuesOf(table).some((entry) => entry.session === session));

/** Returns the entries in a range. */
export function range(data: Data, map: string, from: string, to: string | null, limit: number): Answer {
  const table = lookUp(data.maps, map) ?? emptyTable<Stored>();
  const entries: KeyEntry[] = [];
  for (const [key, entry] of entriesOf(table, from, to)) {
    if (entries.length === limit) return { type: "entries", entries, isMore: true };
    entries.push({ key, ...entry });
  }
  return { type: "entries", entries, isMore: false };
}

/** Returns the changes to a map after a revision, in order. */
export function changesAfter({ kept }: Data, map: string, after: number): Answer {
  const forgotten = Math.max(kept.forgotten, lookUp(kept.forgottenOf, map) ?? 0);
  if (after < forgotten)
    return refuse(
      "compacted",
      `changes up to revision ${forgotten} are compacted, but revision ${after} was requested`,
    );
  const changes = kept.changes.filter((change) => change.revision > after && change.map === map);
  return { type: "changes", changes };
}
