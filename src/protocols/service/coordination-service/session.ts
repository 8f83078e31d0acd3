/**
 * A member's session. The session opens with the first request, renews its lease while it is in use, and closes when
 * idle. This part also counts how long other sessions have been silent.
 */
import type { Context, NodeId, Protocol, RequestId } from "../../../core/protocol.ts";
import { fitsBytes } from "../keyspace/text-size.ts";
import { sweep } from "./expiry.ts";
import { confirmRound, emptyLease, isCertain, runOut } from "./lease.ts";
import { MAX_WHOLE_BYTES, type Proposal } from "./operations.ts";
import { askToRead, readAll } from "./reads.ts";
import { type SessionOptions, sessionOptions } from "./session-options.ts";
import { type MemberSession, shapes } from "./session-vocabulary.ts";
import {
  awaitAnswer,
  begin,
  beginAnew,
  end,
  flush,
  give,
  giveOwn,
  noteReplies,
  propose,
  proposeAgain,
  put,
  refuse,
  resolve,
  roomProblem,
} from "./under-way.ts";

type State = MemberSession["state"];
type Handlers = Protocol<MemberSession>;
type Asked = "submit" | "perform" | "query" | "cork" | "uncork" | "depart";

/** Creates a member's session. @throws UsageError if an option is unknown or out of range. */
export function memberSession(given?: Partial<SessionOptions>): Protocol<MemberSession> {
  const options = sessionOptions.settle(given);
  return {
    name: "coordination-service",
    init: initial,
    start(state, ctx) {
      state.run += 1;
      ctx.compact([{ type: "life", run: state.run, life: state.life }]);
      ctx.setTimer("sweep", options.sweepMs);
      if (state.life === 0) return;
      begin(state, options, ctx); // This releases the previous life's state, which nothing relies on anymore.
      flush(state, options, ctx);
    },
    timeout: timeouts(options),
    command: { ...requests(options), ...wired(options) },
    replay: {
      life(state, { run, life }) {
        state.run = run;
        state.life = life;
      },
    },
    shapes,
    source: "Ongaro & Ousterhout, USENIX ATC 2014, §8; Gray & Cheriton, SOSP 1989",
    assumes: [],
    properties: [],
    costs: [],
    view: (state) => ({ role: roleOf(state), leader: state.leader, term: state.term }),
  };
}

function timeouts(options: SessionOptions): Handlers["timeout"] {
  const { renewMs, retryMs, idleMs, sweepMs } = options;
  return {
    retry: (state, ctx) => proposeAgain(state, options, ctx),
    renew(state, ctx) {
      state.lease.isDue = true;
      ctx.setTimer("renew", renewMs);
      if (state.underWay.length === 0) propose(state, options, ctx);
    },
    idle(state, ctx) {
      ctx.setTimer("idle", idleMs);
      if (!state.isUsed && state.pending.length === 0) close(state, true);
      state.isUsed = false;
      flush(state, options, ctx);
      if (state.pending.length > 0) awaitAnswer(retryMs, ctx);
    },
    readAgain: (state, ctx) => askToRead(state, retryMs, ctx),
    sweep(_state, ctx) {
      ctx.setTimer("sweep", sweepMs);
      ctx.emit({ type: "looking" });
    },
    leaseEven(state, ctx) {
      if (runOut(state, "leaseEven")) beginAnew(state, options, ctx);
    },
    leaseOdd(state, ctx) {
      if (runOut(state, "leaseOdd")) beginAnew(state, options, ctx);
    },
  };
}

function close(state: State, ifIdle: boolean): void {
  state.phase = "closing";
  giveOwn(state, { type: "close", ifIdle });
}

/** Returns the handlers for commands from the application and from other parts of this node. */
function requests(options: SessionOptions): Pick<Handlers["command"], Asked> {
  const { maxPending, retryMs } = options;
  return {
    submit(state, { request, operation }, ctx) {
      const text = JSON.stringify(operation);
      if (!fitsBytes(text, MAX_WHOLE_BYTES))
        return refuse(request, "too-large", `an operation has at most ${MAX_WHOLE_BYTES} bytes`, ctx);
      const problem = roomProblem(state, text, options);
      if (problem !== null) return refuse(request, "overloaded", problem, ctx);
      giveAndFlush(state, request, text, options, ctx);
    },
    perform(state, { operation }, ctx) {
      const text = JSON.stringify(operation);
      if (roomProblem(state, text, options) === null) giveAndFlush(state, null, text, options, ctx);
    },
    query(state, { request, query }, ctx) {
      const { reads } = state;
      if (reads.underWay.length + reads.next.length >= maxPending)
        return refuse(request, "overloaded", `this member already has ${maxPending} reads waiting`, ctx);
      reads.next.push({ request, query });
      if (reads.underWay.length === 0 && !state.isCorked) askToRead(state, retryMs, ctx);
    },
    cork(state) {
      state.isCorked = true;
    },
    uncork(state, _command, ctx) {
      state.isCorked = false;
      flush(state, options, ctx);
      if (state.reads.underWay.length === 0) askToRead(state, retryMs, ctx);
    },
    depart(state, _command, ctx) {
      if (state.phase === "none") return;
      close(state, false);
      awaitAnswer(retryMs, ctx);
      flush(state, options, ctx);
    },
  };
}

function giveAndFlush(
  state: State,
  request: RequestId | null,
  operation: string,
  options: SessionOptions,
  ctx: Context<MemberSession>,
): void {
  if (state.phase === "none") begin(state, options, ctx);
  state.isUsed = true;
  const isFirst = state.pending.length === 0;
  give(state, request, operation);
  if (isFirst) awaitAnswer(options.retryMs, ctx);
  flush(state, options, ctx);
}

/** Returns the handlers for commands from the log and from this member's replica. */
function wired(options: SessionOptions): Omit<Handlers["command"], Asked> {
  const { retryMs } = options;
  return {
    answered(state, { type: _type, ...answered }, ctx) {
      const { life, session, round, replies, isOver, isRestored } = answered;
      if (life === state.life && state.session === null && session !== null) {
        state.session = session;
        ctx.emit({ type: "began", session });
      }
      if (life === state.life && !isOver) confirmRound(state, round, ctx);
      const isClosed = noteReplies(state, answered, ctx);
      if (isOver) return end(state, answered, isClosed, options, ctx);
      if (session !== null) resolve(state, life - 1, isRestored, ctx);
      if (life !== state.life) return;
      if (state.pending.length === 0) ctx.cancelTimer("retry");
      else if (replies.length > 0) awaitAnswer(retryMs, ctx);
      flush(state, options, ctx);
    },
    queried(_state, { request, revision, answer }, ctx) {
      if (answer.type === "refused") refuse(request, answer.code, answer.reason, ctx);
      else ctx.reply(request, { type: "read", revision, answer });
    },
    seen(state, { sessions }, ctx) {
      const propose = (proposal: Proposal): void => put(state, JSON.stringify(proposal), ctx);
      sweep(state, sessions, options, state.leader === ctx.self ? propose : null);
    },
    readable: (state, { read }, ctx) => readAll(state, read, retryMs, ctx),
    led(state, { leader, term }, ctx) {
      const isNew = leader !== null && leader !== state.leader;
      state.leader = leader;
      state.term = term;
      if (!isNew) return;
      proposeAgain(state, options, ctx); // Commands that the previous leader had not committed may be lost.
      if (state.reads.underWay.length > 0) askToRead(state, retryMs, ctx);
    },
  };
}

const initial = (): State => ({
  run: 0,
  life: 0,
  proposals: 0,
  phase: "none",
  session: null,
  given: 0,
  proposed: 0,
  tried: 0,
  applied: 0,
  underWay: [],
  pending: [],
  unresolved: [],
  lease: emptyLease(),
  isCorked: false,
  isUsed: false,
  reads: { read: 0, underWay: [], next: [] },
  leader: null as NodeId | null,
  term: 0,
  watched: [],
});

const roleOf = (state: State): string =>
  state.phase === "none" ? "no session" : isCertain(state) ? "session" : "session not confirmed";
