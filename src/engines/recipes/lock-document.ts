/**
 * The state of a lock, as one value of the engine: its holders and its waiters, in order. Operations use the code of the
 * replicated log (`grants.ts`), so locks are as fair as there and refuse the same requests. Only the token differs: it is
 * an offset (`history.ts`) plus the revision of the change that granted. The revision is unknown before the change, so such
 * a token is stored as 0, with the offset, until the next change.
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
import { enter, lookUp } from "../../protocols/service/coordination-service/table.ts";
import { refused, type StoreEntry } from "../store.ts";

export interface LockDocument extends Lock {
  /** The offset of tokens that are stored as 0. */
  tokenOffset: number;
  /** The member that runs each session. */
  members: Record<string, NodeId>;
}

/** The most holders, and the most waiters, of one lock. */
const MAX_WAITING = 1_000;
/** Every engine accepts a value of this size. */
const MAX_DOCUMENT_CHARACTERS = 400_000;
/** Higher tokens are pending: the change that grants them is being made. */
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

/** @throws UsageError if another program wrote the value: then no lock is granted. */
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
  /** The offset when the lock was read; used again only if no token was stored as 0. */
  readonly before: number;
  readonly next: number;
}

/** @returns null if it has neither holders nor waiters. */
function written(lock: Lock | null, members: Record<string, NodeId>, offsets: TokenOffsets): string | null {
  if (lock === null) return null;
  const tokenOffset = lock.holders.some(({ token }) => token > MOST_TOKEN) ? offsets.next : offsets.before;
  const holders = lock.holders.map((held) => ({ ...held, token: held.token > MOST_TOKEN ? 0 : held.token }));
  const sessions = new Set([...lock.holders, ...lock.waiters].map(({ session }) => String(session)));
  const present = Object.entries(members).filter(([session]) => sessions.has(session));
  return JSON.stringify({ tokenOffset, ...lock, holders, members: Object.fromEntries(present) });
}

export interface DocumentChange {
  readonly value: string | null;
  /** A granted token is 0 here. */
  readonly result: Result;
}

/** The requesting session, and the member that runs it. */
export interface Asking {
  readonly session: number;
  readonly member: NodeId;
}

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

/** Removes ended sessions, and grants the lock to waiters whose turn it is. */
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

export const holdersIn = (document: LockDocument | null): Holder[] =>
  (document?.holders ?? []).map(({ session, token, mode, permits, note }) => ({
    session,
    member: document?.members[session] ?? 0,
    token,
    mode,
    permits,
    note,
  }));

export const sessionsIn = (document: LockDocument): number[] => [
  ...new Set([...document.holders, ...document.waiters].map(({ session }) => session)),
];

function applying(before: LockDocument | null, name: string): Applying {
  const data = emptyData();
  data.revision = MOST_TOKEN;
  if (before !== null) {
    const { capacity, holders, waiters } = before;
    enter(data.locks, name, { capacity, holders: [...holders], waiters: [...waiters] });
  }
  return { data, limits: { ...limits }, tell() {} };
}

/** Only `maxWaiting` matters here. */
const limits = {
  maxBytes: 0,
  maxNames: 1,
  maxWaiting: MAX_WAITING,
  maxItems: 0,
  maxChanges: 0,
  maxChangeBytes: 0,
  maxPendingBytes: 0,
  maxMachines: 0,
  maxMachineBytes: 0,
};
