/**
 * Reads of a member. Those that arrive while a read index is being requested wait for the next one and are answered
 * together.
 */
import type { Context } from "../../../core/protocol.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** The most reads of one run. The higher digits of a read's number are the run. */
const MAX_READS = 2 ** 36;

/** Requests an index, again for the reads in progress or for those that wait. */
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

/** This member's replica is up to date for the reads in progress. */
export function readAll(state: State, number: number, retryMs: number, ctx: Ctx): void {
  const { reads } = state;
  if (number !== readNumber(state)) return; // A newer request replaced this one.
  const { underWay } = reads;
  reads.underWay = [];
  for (const asked of underWay) ctx.emit({ type: "query", ...asked });
  askToRead(state, retryMs, ctx);
}

/** Contains the run, since an answer to a request from before a crash is older than the reads of this run. */
const readNumber = ({ run, reads }: State): number => run * MAX_READS + reads.read;
