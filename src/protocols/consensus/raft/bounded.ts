/**
 * Raft in which every run ends, so that all of them can be looked at: nodes stand for election in two terms, without a
 * pre-vote, and no heartbeats follow; a leader tells what is committed with the next entries. What safety rests on is all
 * there: terms, votes, the journal, the check of the log, entries that are replaced, snapshots, changes of members.
 */
import type { Context, Duration, Protocol, TimerOf } from "../../../core/protocol.ts";
import { changedContext } from "../../contexts.ts";
import type { RaftOptions } from "./options.ts";
import { safetyWith } from "./properties.ts";
import { type Raft, raft } from "./raft.ts";

type Ctx = Context<Raft>;
type State = Raft["state"];

/** @param lastTerm the last term in which anybody stands. */
export function boundedRaft(given?: Partial<RaftOptions>, lastTerm = 2): Protocol<Raft> {
  const { start, receive, timeout, command, ...rest } = raft({
    ...given,
    preVote: false,
    checkQuorum: false,
    leaseReads: false,
  });
  /** A time-out that began in the term before may run out in the last one. */
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

/** The same handlers, of which none arms the timers that go on for ever. The state is the first argument, the context the last. */
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
      else ctx.cancelTimer(timer); // One that was armed in the term before.
    },
  });
