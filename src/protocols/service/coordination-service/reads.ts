/**
 * Reads at a member. Reads that arrive while a read index is being requested wait for the next read index, and are
 * answered together.
 */
import type { Context } from "../../../core/protocol.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** The maximum number of reads between restarts. A read's number is `run * MAX_READS` plus a counter. */
const MAX_READS = 2 ** 36;

/** Requests a read index, either again for the reads in progress or for the first time for the waiting reads. */
export function askToRead(state: State, retryMs: number, ctx: Ctx): void {
  const { reads } = state;
  if (reads.underWay.length === 0) {
    reads.underWay = reads.next;
    reads.next = [];
  }
  if (reads.underWay.length === 0) return ctx.cancelTimer("readAgain");
  reads.read += 1;
  ctx.setTimer("readAgain", [retryMs, 2 * retryMs]);
  ctx.emit({ type: "reading", read: readNumber(state) });
}

/** Answers the reads in progress, because this member's replica is now up to date for them. */
export function readAll(state: State, number: number, retryMs: number, ctx: Ctx): void {
  const { reads } = state;
  if (number !== readNumber(state)) return; // A newer request has replaced this one.
  const { underWay } = reads;
  reads.underWay = [];
  for (const asked of underWay) ctx.emit({ type: "query", ...asked });
  askToRead(state, retryMs, ctx);
}

/**
 * Returns the current read's number. It includes the run, so that answers to requests from before a crash are not used.
 */
const readNumber = ({ run, reads }: State): number => run * MAX_READS + reads.read;
