/**
 * Raft with finite runs, so that a search can explore all of them. Nodes start elections in only two terms, without a
 * pre-vote, and leaders send no heartbeats, so the next entries carry the commit index. Everything that safety depends
 * on is unchanged: terms, votes, the journal, the log checks, replaced entries, snapshots, membership changes.
 */
import type { Context, Duration, Protocol, TimerOf } from "../../../core/protocol.ts";
import { changedContext } from "../../contexts.ts";
import type { RaftOptions } from "./options.ts";
import { safetyWith } from "./properties.ts";
import { type Raft, raft } from "./raft.ts";

type Ctx = Context<Raft>;
type State = Raft["state"];

/** Creates Raft with finite runs. @param lastTerm the last term that can have candidates */
export function boundedRaft(given?: Partial<RaftOptions>, lastTerm = 2): Protocol<Raft> {
  const { start, receive, timeout, command, ...rest } = raft({
    ...given,
    preVote: false,
    checkQuorum: false,
    leaseReads: false,
  });
  /** Ignores election timeouts in the last term. A timer set in the previous term may still expire in it. */
  const untilLast = (state: State, ctx: Ctx): void => {
    if (state.term < lastTerm) timeout.election(state, ctx);
  };
  return {
    ...rest,
    properties: safetyWith({ catchUpRounds: given?.catchUpRounds ?? 0 }),
    start: (state, ctx) => start?.(state, calm(state, lastTerm, ctx)),
    receive: calmly(receive, lastTerm),
    timeout: calmly({ ...timeout, election: untilLast }, lastTerm),
    command: calmly(command, lastTerm),
  };
}

/**
 * Wraps the handlers so that they never set a timer that recurs forever. Their first argument is the state, and their
 * last argument is the context.
 */
function calmly<T extends object>(handlers: T, lastTerm: number): T {
  const entries = Object.entries(handlers as Record<string, (...args: unknown[]) => void>);
  return Object.fromEntries(
    entries.map(([name, handle]) => [
      name,
      (...args: unknown[]) => handle(...args.slice(0, -1), calm(args[0] as State, lastTerm, args.at(-1) as Ctx)),
    ]),
  ) as T;
}

const calm = (state: State, lastTerm: number, ctx: Ctx): Ctx =>
  changedContext(ctx, {
    setTimer(timer: TimerOf<Raft>, duration: Duration) {
      if (timer === "election" && state.term < lastTerm) ctx.setTimer(timer, duration);
      else ctx.cancelTimer(timer); // It may have been set in the previous term.
    },
  });
