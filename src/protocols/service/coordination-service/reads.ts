/** Reads of a member: all that come while the log is asked for one index wait for the next, and are answered together. */
import type { Context } from "../../../core/protocol.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type State = MemberSession["state"];
type Ctx = Context<MemberSession>;

/** Of one run; the number of the run stands above them. */
const MAX_READS = 2 ** 36;

/** Those that are under way anew, or those that wait. */
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

/** This member's replica is up to date for what was under way. */
export function readAll(state: State, number: number, retryMs: number, ctx: Ctx): void {
  const { reads } = state;
  if (number !== readNumber(state)) return; // It has been asked for again.
  const { underWay } = reads;
  reads.underWay = [];
  for (const asked of underWay) ctx.emit({ type: "query", ...asked });
  askToRead(state, retryMs, ctx);
}

/** An answer to what this node asked before it crashed is older than what it asks now. */
const readNumber = ({ run, reads }: State): number => run * MAX_READS + reads.read;
