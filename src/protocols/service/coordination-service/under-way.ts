/**
 * A session's operations in progress. They are numbered, and proposed until this member's replica has applied them,
 * many at a time. Requests that arrive while commands are in flight share the next command. The end of a session does
 * not settle the operations that have been proposed, because the log may still apply them. Their outcome is known once
 * the log has ended the session's life.
 */
import type { Context, RequestId } from "../../../core/protocol.ts";
import { fitsBytes, utf8BytesOf } from "../keyspace/text-size.ts";
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

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** The maximum number of commands between restarts. A command's number is `run * MAX_PROPOSALS` plus a counter. */
const MAX_PROPOSALS = 2 ** 36;

/** Opens a session with a new life, so that its operations are never mistaken for those from an earlier session. */
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
 * Returns the reason, as a clause, why this member cannot accept the operation now. Null if it can. If no other
 * operation is in progress, an operation of any length is accepted.
 */
export function roomProblem(
  { pending, unresolved }: State,
  operation: string,
  { maxPending, maxPendingChars }: SessionOptions,
): string | null {
  const commands = pending.length + unresolved.length;
  const most = commands + partCount(operation); // An upper bound, which is usually low enough to skip counting.
  const isFew = most <= maxPending && most * MAX_OPERATION_BYTES <= maxPendingChars && unresolved.length === 0;
  if (commands === 0 || isFew) return null;
  const calls = pending.filter(({ isPart }) => isPart !== true).length + unresolved.length;
  if (calls >= maxPending) return `this member already has ${maxPending} operations in progress`;
  const texts = [...pending.map((each) => each.operation), ...unresolved.map((each) => each.whole ?? each.operation)];
  const chars = texts.reduce((sum, { length }) => sum + length, operation.length);
  if (chars <= maxPendingChars) return null;
  return `this member's operations in progress would have ${chars} characters; the maximum is ${maxPendingChars}`;
}

/**
 * Adds an operation. If it is too long for one command, it is split into parts, and the last part is answered. @param
 * operation the operation as JSON
 */
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

/** Returns the number of commands that the operation needs. */
const partCount = (operation: string): number =>
  fitsBytes(operation, MAX_OPERATION_BYTES) ? 1 : Math.ceil(operation.length / PART_CHARS);

function partOf(operation: string, number: number, count: number): string {
  const text = operation.slice((number - 1) * PART_CHARS, number * PART_CHARS);
  return JSON.stringify({ type: "part", number, isLast: number === count, text } satisfies SessionOperation);
}

/** Adds an operation that opens or closes the session. */
export function giveOwn(state: State, operation: SessionOperation): void {
  state.given += 1;
  state.pending.push({ sequence: state.given, request: null, isOwn: true, operation: JSON.stringify(operation) });
}

/** Starts the timer that repeats unanswered proposals. */
export const awaitAnswer = (retryMs: number, ctx: Ctx): void => ctx.setTimer("retry", [retryMs, 2 * retryMs]);

/** Proposes a command to the log. */
export function put(state: State, text: string, ctx: Ctx): void {
  state.proposals += 1;
  const sequence = state.run * MAX_PROPOSALS + state.proposals;
  ctx.emit({ type: "proposed", command: { client: ctx.self, sequence, operation: text } });
}

/** Proposes the waiting operations, as long as only a few commands are in flight. */
export function flush(state: State, options: SessionOptions, ctx: Ctx): void {
  if (state.isCorked || state.phase === "none") return; // The numbers still belong to the previous life.
  while (state.proposed < state.given && state.underWay.length < options.maxUnderWay) propose(state, options, ctx);
}

/** Proposes as many of the next operations as fit in one command. A command without operations is a keep-alive. */
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

/** Proposes everything again, starting with the first operation that has not been applied. */
export function proposeAgain(state: State, options: SessionOptions, ctx: Ctx): void {
  state.proposed = state.applied;
  state.underWay = [];
  if (state.pending.length === 0) return;
  awaitAnswer(options.retryMs, ctx);
  flush(state, options, ctx);
}

/**
 * Answers the requests that the replies belong to. Returns whether the log has closed the session at the member's
 * request.
 */
export function noteReplies(state: State, { life, session, first, replies }: Answered, ctx: Ctx): boolean {
  let isClosed = false;
  for (const [at, { revision, result }] of replies.entries()) {
    const sequence = first + at;
    const found = life === state.life ? takeApplied(state, sequence) : takeUnresolved(state, life, sequence);
    if (found === null) continue; // The outcome is already known.
    if (result.type === "refused") refuse(found.request, result.code, result.reason, ctx);
    else if (found.request !== null)
      ctx.reply(found.request, { type: "done", session: session ?? 0, revision, result });
    if (!found.isOwn || sequence === 1 || life !== state.life) continue;
    isClosed = result.type === "done";
    state.phase = "open"; // If the close was refused, the session stays open.
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

/** Removes and returns an operation from an earlier life, because its outcome is now known. */
function takeUnresolved(state: State, life: number, sequence: number): Pending | null {
  const place = state.unresolved.findIndex((each) => each.life === life && each.sequence === sequence);
  return place === -1 ? null : (state.unresolved.splice(place, 1)[0] as Pending);
}

/** Handles the end, in the log, of this life and all earlier ones. Operations after a close have not been applied. */
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
 * Begins a new session after the lease has ended. Operations that have been proposed may still be applied until the new
 * session opens and thereby ends the old one in the log.
 */
export function beginAnew(state: State, options: SessionOptions, ctx: Ctx): void {
  beginWith(
    state,
    lose(state, ({ sequence }) => sequence <= state.tried, ctx),
    options,
    ctx,
  );
}

/**
 * Ends the current session. Returns the operations to request again in the next session. The others wait until their
 * outcome is known.
 */
function lose(state: State, isAwaited: (pending: Pending) => boolean, ctx: Ctx): Pending[] {
  const { session, life, pending } = state;
  const asked = pending.filter(({ request }) => request !== null); // Other parts of this node retry by themselves.
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

/** Refuses the remaining operations from all lives up to this one. */
export function resolve(state: State, life: number, isRestored: boolean, ctx: Ctx): void {
  if (state.unresolved.length === 0) return;
  const over = state.unresolved.filter((each) => each.life <= life);
  state.unresolved = state.unresolved.filter((each) => each.life > life);
  const [code, reason] = isRestored
    ? (["outcome-unknown", "the session ended, and it is unknown whether the operation was applied"] as const)
    : (["session-expired", "the session ended before the operation was applied"] as const);
  for (const { request } of over) refuse(request, code, reason, ctx);
}

/** Answers a request with a refusal. */
export function refuse(request: RequestId | null, code: RefusalCode, reason: string, ctx: Ctx): void {
  if (request !== null) ctx.reply(request, { type: "refused", code, reason });
}
