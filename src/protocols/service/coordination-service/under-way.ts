/**
 * Operations of a session that are in progress: numbered, and proposed until this member's replica has applied them,
 * many at a time. Requests that arrive while commands are in flight share the next command. The end of a session does
 * not settle proposed operations, since the log may still apply them: their outcome is known once the log has ended
 * that life.
 */
import type { Context, RequestId } from "../../../core/protocol.ts";
import { beginRound, stopLease } from "./lease.ts";
import {
  MAX_OPERATION_BYTES,
  MAX_OPERATIONS,
  PART_CHARS,
  type RefusalCode,
  type SessionOperation,
  STATE_MACHINE_VERSION,
} from "./operations.ts";
import type { Answered } from "./replica.ts";
import type { SessionOptions } from "./session-options.ts";
import type { MemberSession, Pending } from "./session-vocabulary.ts";
import { fitsBytes, utf8BytesOf } from "./state.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** The most commands of one run. The higher digits of a command's number are the run. */
const MAX_PROPOSALS = 2 ** 36;

/** Opens a session with a life of its own, so that its operations are never mistaken for operations of another. */
export function begin(state: State, { leaseMs, renewMs, idleMs, retryMs }: SessionOptions, ctx: Ctx): void {
  state.life += 1;
  ctx.compact([{ type: "life", run: state.run, life: state.life }]);
  Object.assign(state, { phase: "open", session: null, given: 0, proposed: 0, tried: 0, applied: 0, underWay: [] });
  giveOwn(state, { type: "begin", ttlMs: Math.ceil(leaseMs), version: STATE_MACHINE_VERSION });
  awaitAnswer(retryMs, ctx);
  ctx.setTimer("renew", renewMs);
  ctx.setTimer("idle", idleMs);
}

/**
 * @returns why no other operation may be in progress, as a clause; null if it may. The first one may have any length.
 */
export function roomProblem(
  { pending, unresolved }: State,
  operation: string,
  { maxPending, maxPendingChars }: SessionOptions,
): string | null {
  const commands = pending.length + unresolved.length;
  const most = commands + partCount(operation); // An upper bound, usually low enough to skip counting.
  const isFew = most <= maxPending && most * MAX_OPERATION_BYTES <= maxPendingChars && unresolved.length === 0;
  if (commands === 0 || isFew) return null;
  const calls = pending.filter(({ isPart }) => isPart !== true).length + unresolved.length;
  if (calls >= maxPending) return `${maxPending} operations of this member are under way`;
  const texts = [...pending.map((each) => each.operation), ...unresolved.map((each) => each.whole ?? each.operation)];
  const chars = texts.reduce((sum, { length }) => sum + length, operation.length);
  if (chars <= maxPendingChars) return null;
  return `operations of this member that are under way would have ${chars} characters, and at most ${maxPendingChars} may be`;
}

/** @param operation as JSON. One that is too long for a command is split into parts, and the last part is answered. */
export function give(state: State, request: RequestId | null, operation: string): void {
  const count = partCount(operation);
  for (let number = 1; number < count; number++) {
    giveNext(state, null, partOf(operation, number, count));
    (state.pending.at(-1) as Pending).isPart = true;
  }
  if (count === 1) return giveNext(state, request, operation);
  giveNext(state, request, partOf(operation, count, count));
  (state.pending.at(-1) as Pending).whole = operation;
}

function giveNext(state: State, request: RequestId | null, operation: string): void {
  state.given += 1;
  state.pending.push({ sequence: state.given, request, isOwn: false, operation });
}

/** @returns the number of commands that the operation takes. */
const partCount = (operation: string): number =>
  fitsBytes(operation, MAX_OPERATION_BYTES) ? 1 : Math.ceil(operation.length / PART_CHARS);

function partOf(operation: string, number: number, count: number): string {
  const text = operation.slice((number - 1) * PART_CHARS, number * PART_CHARS);
  return JSON.stringify({ type: "part", number, isLast: number === count, text } satisfies SessionOperation);
}

/** Adds an operation of the session itself. */
export function giveOwn(state: State, operation: SessionOperation): void {
  state.given += 1;
  state.pending.push({ sequence: state.given, request: null, isOwn: true, operation: JSON.stringify(operation) });
}

export const awaitAnswer = (retryMs: number, ctx: Ctx): void => ctx.setTimer("retry", [retryMs, 2 * retryMs]);

export function put(state: State, text: string, ctx: Ctx): void {
  state.proposals += 1;
  const sequence = state.run * MAX_PROPOSALS + state.proposals;
  ctx.emit({ type: "proposed", command: { client: ctx.self, sequence, operation: text } });
}

/** Proposes all waiting operations, as long as few commands are in flight. */
export function flush(state: State, options: SessionOptions, ctx: Ctx): void {
  if (state.isCorked || state.phase === "none") return; // The numbers still belong to the life that is over.
  while (state.proposed < state.given && state.underWay.length < options.maxUnderWay) propose(state, options, ctx);
}

/** Proposes the next operations, as many as one command holds. A command without operations is a keep-alive. */
export function propose(state: State, options: SessionOptions, ctx: Ctx): void {
  beginRound(state, options, ctx);
  const { life, lease, applied, pending } = state;
  const texts: string[] = [];
  let bytes = 0;
  for (let at = state.proposed - applied; at < pending.length && texts.length < MAX_OPERATIONS; at++) {
    const { operation } = pending[at] as Pending;
    bytes += utf8BytesOf(operation) + 1;
    if (bytes > MAX_OPERATION_BYTES && texts.length > 0) break;
    texts.push(operation);
  }
  const first = state.proposed + 1;
  state.proposed += texts.length;
  state.tried = Math.max(state.tried, state.proposed);
  if (texts.length > 0) state.underWay.push(state.proposed);
  const numbers = `"life":${life},"round":${lease.round},"acknowledged":${applied},"first":${first}`;
  put(state, `{"type":"operations",${numbers},"operations":[${texts.join(",")}]}`, ctx);
}

/** Proposes everything again, from the first operation that is not applied. */
export function proposeAgain(state: State, options: SessionOptions, ctx: Ctx): void {
  state.proposed = state.applied;
  state.underWay = [];
  if (state.pending.length === 0) return;
  awaitAnswer(options.retryMs, ctx);
  flush(state, options, ctx);
}

/** @returns whether the log has closed the session at its own request. */
export function noteReplies(state: State, { life, session, first, replies }: Answered, ctx: Ctx): boolean {
  let isClosed = false;
  for (const [at, { revision, result }] of replies.entries()) {
    const sequence = first + at;
    const found = life === state.life ? takeApplied(state, sequence) : takeUnresolved(state, life, sequence);
    if (found === null) continue; // Its outcome is known already.
    if (result.type === "refused") refuse(found.request, result.code, result.reason, ctx);
    else if (found.request !== null)
      ctx.reply(found.request, { type: "done", session: session ?? 0, revision, result });
    if (!found.isOwn || sequence === 1 || life !== state.life) continue;
    isClosed = result.type === "done";
    state.phase = "open"; // It holds something, so it stays open.
  }
  return isClosed;
}

function takeApplied(state: State, sequence: number): Pending | null {
  if (state.pending[0]?.sequence !== sequence) return null;
  state.applied = sequence;
  state.proposed = Math.max(state.proposed, sequence);
  while ((state.underWay[0] ?? Number.POSITIVE_INFINITY) <= sequence) state.underWay.shift();
  return state.pending.shift() ?? null;
}

/** Removes an operation of an earlier life, whose outcome is now known. */
function takeUnresolved(state: State, life: number, sequence: number): Pending | null {
  const place = state.unresolved.findIndex((each) => each.life === life && each.sequence === sequence);
  return place === -1 ? null : (state.unresolved.splice(place, 1)[0] as Pending);
}

/** Handles the end of this life in the log, and of all earlier ones. Operations after a close have not been applied. */
export function end(
  state: State,
  { life, isRestored }: Answered,
  isClosed: boolean,
  options: SessionOptions,
  ctx: Ctx,
) {
  const isCurrent = life === state.life && state.phase !== "none";
  const rest = isCurrent ? lose(state, ({ sequence }) => !isClosed && sequence <= state.tried, ctx) : [];
  resolve(state, life, isRestored, ctx);
  if (rest.length > 0) beginWith(state, rest, options, ctx);
}

/**
 * Begins a new session, since the lease is over. Proposed operations may still be applied; the next session makes the
 * log end this one.
 */
export function beginAnew(state: State, options: SessionOptions, ctx: Ctx): void {
  beginWith(
    state,
    lose(state, ({ sequence }) => sequence <= state.tried, ctx),
    options,
    ctx,
  );
}

/** @returns the operations to request in the next session. The others wait until their outcome is known. */
function lose(state: State, isAwaited: (pending: Pending) => boolean, ctx: Ctx): Pending[] {
  const { session, life, pending } = state;
  const asked = pending.filter(({ request }) => request !== null); // Other parts of this node retry themselves.
  state.unresolved.push(...asked.filter(isAwaited).map((each) => ({ ...each, life })));
  Object.assign(state, { phase: "none", session: null, pending: [], underWay: [] });
  for (const timer of ["retry", "renew", "idle"] as const) ctx.cancelTimer(timer);
  stopLease(state, ctx);
  if (session !== null) ctx.emit({ type: "lost", session });
  return asked.filter((each) => !isAwaited(each));
}

function beginWith(state: State, rest: readonly Pending[], options: SessionOptions, ctx: Ctx): void {
  begin(state, options, ctx);
  for (const { request, operation, whole = operation } of rest) give(state, request, whole);
  flush(state, options, ctx);
}

/** Settles the remaining operations of lives up to this one. */
export function resolve(state: State, life: number, isRestored: boolean, ctx: Ctx): void {
  if (state.unresolved.length === 0) return;
  const over = state.unresolved.filter((each) => each.life <= life);
  state.unresolved = state.unresolved.filter((each) => each.life > life);
  const [code, reason] = isRestored
    ? (["outcome-unknown", "the session ended, and it is unknown whether the operation was applied"] as const)
    : (["session-expired", "the session ended before the operation was applied"] as const);
  for (const { request } of over) refuse(request, code, reason, ctx);
}

export function refuse(request: RequestId | null, code: RefusalCode, reason: string, ctx: Ctx): void {
  if (request !== null) ctx.reply(request, { type: "refused", code, reason });
}
