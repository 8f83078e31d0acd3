/**
 * Grants. A fair queue per name implements mutexes (capacity 1), semaphores, readers-writer locks and elections (the
 * holder leads until it resigns or its session ends). Waiters are served in FIFO order, so readers do not overtake a
 * waiting writer. Each grant has a token. Tokens increase across all names and never start over.
 */

import { enter, keysOf, lookUp, strike, valuesOf } from "../keyspace/table.ts";
import type { Answer, GrantOperation, Refusal, Result, SessionId } from "./operations.ts";
import { MAX_PERMITS, refuse } from "./operations.ts";
import { type Applying, type Data, type Held, type Lock, nextRevision, sessionNamed } from "./state.ts";

type Acquire = Extract<GrantOperation, { type: "acquire" }>;

export function applyToGrants(on: Applying, session: SessionId, operation: GrantOperation): Result {
  const { name } = operation;
  if (operation.type === "acquire") return acquire(on, session, operation);
  const lock = lookUp(on.data.locks, name);
  if (operation.type === "release") return release(on, lock, session, name, operation.token);
  const { wait } = operation;
  const held = lock?.holders.find((holder) => holder.session === session && holder.wait === wait);
  if (held !== undefined) return release(on, lock, session, name, held.token);
  if (lock === null) return { type: "done" };
  lock.waiters = lock.waiters.filter((waiter) => waiter.session !== session || waiter.wait !== wait);
  grantNext(on, name, lock);
  return { type: "done" };
}

function acquire(on: Applying, session: SessionId, operation: Acquire): Result {
  const { name, wait, mode, permits, capacity, note } = operation;
  const lock = lookUp(on.data.locks, name) ?? { capacity, holders: [], waiters: [] };
  const isMine = (other: { session: SessionId; wait: number }) => other.session === session && other.wait === wait;
  if (!lock.holders.some(isMine) && !lock.waiters.some(isMine)) {
    const refused = refusalOf(on, lock, operation);
    if (refused !== null) return refused;
    lock.waiters.push({ session, wait, mode, permits: mode === "exclusive" ? capacity : permits, note });
    enter(on.data.locks, name, lock);
    grantNext(on, name, lock);
  } else tellAgain(on, name, lock.holders.find(isMine));
  const held = lock.holders.find(isMine);
  if (held !== undefined) return { type: "granted", token: held.token };
  return { type: "waiting", ahead: lock.waiters.findIndex(isMine) };
}

/** Emits a grant again, for a member that missed it while installing a snapshot. */
function tellAgain({ tell }: Applying, name: string, held: Held | undefined): void {
  if (held === undefined) return;
  const { session, wait, token, note } = held;
  tell({ type: "granted", name, session, wait, token, note });
}

function refusalOf({ data, limits }: Applying, lock: Lock, operation: Acquire): Refusal | null {
  const { mode, permits, capacity, name } = operation;
  if (capacity < 1 || capacity > MAX_PERMITS)
    return refuse("bad-operation", `expected a capacity from 1 to ${MAX_PERMITS}, got ${capacity}`);
  if (mode === "shared" && (permits < 1 || permits > capacity))
    return refuse("bad-operation", `expected permits from 1 to ${capacity}, got ${permits}`);
  if (lock.capacity !== capacity)
    return refuse("in-use", `expected a capacity of ${lock.capacity}, which is already in use, got ${capacity}`);
  if (lock.holders.length + lock.waiters.length >= limits.maxWaiting)
    return refuse("too-many", `${limits.maxWaiting} calls already hold or wait for it`);
  if (lookUp(data.locks, name) === null && data.locks.size >= limits.maxNames)
    return refuse("too-many", `there are already ${limits.maxNames} locks`);
  return null;
}

/** Releases a grant, which is identified by its token so that a late release does not affect the next holder. */
function release(on: Applying, lock: Lock | null, session: SessionId, name: string, token: number): Result {
  const held = lock?.holders.find((holder) => holder.token === token && holder.session === session);
  if (lock === null || held === undefined)
    return refuse("not-held", `this session holds no grant of it with token ${token}`);
  takeBack(on, name, lock, held);
  grantNext(on, name, lock);
  return { type: "done" };
}

function takeBack({ tell }: Applying, name: string, lock: Lock, held: Held): void {
  lock.holders = lock.holders.filter((holder) => holder !== held);
  tell({ type: "released", name, session: held.session, token: held.token });
}

/**
 * Makes grants to waiters in FIFO order while there is capacity. Deletes the lock if it has neither holders nor
 * waiters.
 */
function grantNext({ data, tell }: Applying, name: string, lock: Lock): void {
  let used = lock.holders.reduce((sum, { permits }) => sum + permits, 0);
  for (let next = lock.waiters[0]; next !== undefined && used + next.permits <= lock.capacity; next = lock.waiters[0]) {
    lock.waiters.shift();
    const token = nextRevision(data);
    lock.holders.push({ ...next, token });
    used += next.permits;
    tell({ type: "granted", name, session: next.session, wait: next.wait, token, note: next.note });
  }
  if (lock.holders.length === 0 && lock.waiters.length === 0) strike(data.locks, name);
}

/** Releases all grants held by a session that has ended, and withdraws its requests. */
export function releaseGrants(on: Applying, session: SessionId): void {
  for (const name of keysOf(on.data.locks)) {
    const lock = lookUp(on.data.locks, name) as Lock;
    if (!isConcerned(lock, session)) continue;
    lock.waiters = lock.waiters.filter((waiter) => waiter.session !== session);
    for (const held of lock.holders.filter((holder) => holder.session === session)) takeBack(on, name, lock, held);
    grantNext(on, name, lock);
  }
}

const isConcerned = ({ holders, waiters }: Lock, session: SessionId): boolean =>
  holders.some((holder) => holder.session === session) || waiters.some((waiter) => waiter.session === session);

/** Returns whether the session holds or is waiting for a grant. */
export const holdsGrants = ({ locks }: Data, session: SessionId): boolean =>
  valuesOf(locks).some((lock) => isConcerned(lock, session));

/** Returns a lock's holders and its number of waiters. */
export function holdersOf(data: Data, name: string): Answer {
  const lock = lookUp(data.locks, name);
  const holders = (lock?.holders ?? []).map(({ session, token, mode, permits, note }) => ({
    session,
    member: sessionNamed(data, session)?.member ?? 0,
    token,
    mode,
    permits,
    note,
  }));
  return { type: "holders", holders, waiting: lock?.waiters.length ?? 0 };
}
