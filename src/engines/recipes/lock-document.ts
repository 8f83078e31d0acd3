/**
 * The state of a lock, stored as a single value in the engine: its holders and its waiters, in order. Operations use
 * the same code as the replicated log (`grants.ts`), so locks are just as fair and refuse the same requests. Only the
 * token differs. It is an offset (`history.ts`) plus the revision of the change that granted it. The revision is not
 * known before the change, so until the next change such a token is stored as 0, together with the offset.
 */
import type { NodeId } from "../../core/protocol.ts";
import { list, natural, oneOf, perNode, problem, struct, text } from "../../core/shape.ts";
import { applyToGrants, releaseGrants } from "../../protocols/service/coordination-service/grants.ts";
import {
  type GrantOperation,
  type Holder,
  MAX_NOTE_BYTES,
  type Result,
  refuse,
} from "../../protocols/service/coordination-service/operations.ts";
import { type Applying, emptyData, type Held, type Lock } from "../../protocols/service/coordination-service/state.ts";
import { enter, lookUp } from "../../protocols/service/keyspace/table.ts";
import { refused, type StoreEntry } from "../store.ts";

/** The decoded state of a lock. */
export interface LockDocument extends Lock {
  /** The offset for tokens that are stored as 0. */
  tokenOffset: number;
  /** The member that each session belongs to. */
  members: Record<string, NodeId>;
}

/** The maximum number of a lock's holders, and of its waiters. */
const MAX_WAITING = 1_000;
/** The maximum size of a document. Every engine accepts values of this size. */
const MAX_DOCUMENT_CHARACTERS = 400_000;
/** The highest token. A higher number is a placeholder until the change that grants the token has a revision. */
export const MOST_TOKEN = 2 ** 52;

const waiterFields = {
  session: natural,
  wait: natural,
  mode: oneOf("exclusive", "shared"),
  permits: natural,
  note: text(MAX_NOTE_BYTES),
} as const;
const shape = struct<LockDocument>({
  capacity: natural,
  holders: list(struct<Held>({ ...waiterFields, token: natural }), MAX_WAITING),
  waiters: list(struct(waiterFields), MAX_WAITING),
  tokenOffset: natural,
  members: perNode(natural, MAX_WAITING),
});

/** @throws UsageError if another program wrote the value. In that case, no lock is granted. */
export function readDocument({ value, revision }: Pick<StoreEntry, "value" | "revision">): LockDocument {
  const document = parsed(value);
  for (const held of document.holders) if (held.token === 0) held.token = document.tokenOffset + revision;
  return document;
}

function parsed(value: string): LockDocument {
  try {
    const read: unknown = JSON.parse(value);
    if (problem(shape, read, "lock") === null) return read as LockDocument;
  } catch {} // Handled below.
  throw refused("bad-operation", "the value of the lock was not written by Coterie");
}

interface TokenOffsets {
  /** The offset when the lock was read. It is retained unless this change stores a token as 0. */
  readonly before: number;
  readonly next: number;
}

/** @returns null if the lock has neither holders nor waiters */
function written(lock: Lock | null, members: Record<string, NodeId>, offsets: TokenOffsets): string | null {
  if (lock === null) return null;
  const tokenOffset = lock.holders.some(({ token }) => token > MOST_TOKEN) ? offsets.next : offsets.before;
  const holders = lock.holders.map((held) => ({ ...held, token: held.token > MOST_TOKEN ? 0 : held.token }));
  const sessions = new Set([...lock.holders, ...lock.waiters].map(({ session }) => String(session)));
  const present = Object.entries(members).filter(([session]) => sessions.has(session));
  return JSON.stringify({ tokenOffset, ...lock, holders, members: Object.fromEntries(present) });
}

/** The document after an operation, and the operation's result. */
export interface DocumentChange {
  readonly value: string | null;
  /** The operation's result. If it contains a granted token, the token is 0. */
  readonly result: Result;
}

/** The requesting session, and the member that it belongs to. */
export interface Asking {
  readonly session: number;
  readonly member: NodeId;
}

/** Applies an operation to a document. */
export function applied(
  before: LockDocument | null,
  name: string,
  { session, member }: Asking,
  operation: GrantOperation,
  tokenOffset: number,
): DocumentChange {
  const on = applying(before, name);
  const result = applyToGrants(on, session, operation);
  const members = { ...before?.members, [session]: member };
  const offsets = { before: before?.tokenOffset ?? 0, next: tokenOffset };
  const value = written(lookUp(on.data.locks, name), members, offsets);
  if (operation.type === "acquire" && (value?.length ?? 0) > MAX_DOCUMENT_CHARACTERS)
    return {
      value: null,
      result: refuse("too-many", `its holders and waiters use all available space`),
    };
  const isNew = result.type === "granted" && result.token > MOST_TOKEN;
  return { value, result: isNew ? { type: "granted", token: 0 } : result };
}

/** Removes ended sessions, and grants the lock to the waiters whose turn it is. */
export function withoutSessions(
  before: LockDocument,
  name: string,
  ended: readonly number[],
  tokenOffset: number,
): string | null {
  const on = applying(before, name);
  for (const session of ended) releaseGrants(on, session);
  return written(lookUp(on.data.locks, name), before.members, { before: before.tokenOffset, next: tokenOffset });
}

/** Returns the holders of the lock. */
export const holdersIn = (document: LockDocument | null): Holder[] =>
  (document?.holders ?? []).map(({ session, token, mode, permits, note }) => ({
    session,
    member: document?.members[session] ?? 0,
    token,
    mode,
    permits,
    note,
  }));

/** Returns the sessions that hold the lock or are waiting for it. */
export const sessionsIn = (document: LockDocument): number[] => [
  ...new Set([...document.holders, ...document.waiters].map(({ session }) => session)),
];

function applying(before: LockDocument | null, name: string): Applying {
  const data = emptyData();
  data.keyspace.revision = MOST_TOKEN;
  if (before !== null) {
    const { capacity, holders, waiters } = before;
    enter(data.locks, name, { capacity, holders: [...holders], waiters: [...waiters] });
  }
  return { data, limits: { ...limits }, tell() {} };
}

/** Limits on grants. Only `maxWaiting` matters here. */
const limits = {
  maxBytes: 0,
  maxNames: 1,
  maxWaiting: MAX_WAITING,
  maxItems: 0,
  maxHistoryBytes: 0,
  maxPendingBytes: 0,
  maxMachines: 0,
  maxMachineBytes: 0,
};
