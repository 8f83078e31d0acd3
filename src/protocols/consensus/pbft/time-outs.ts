/** Which timers run: for a request that is to be executed in time (§4.4), and for what this replica has to be sent again. */
import { nodesIn } from "../../../core/per-node.ts";
import type { Context } from "../../../core/protocol.ts";
import type { PbftOptions } from "./options.ts";
import { isPrimary, type Pbft, type Slot, weakQuorum } from "./vocabulary.ts";

type State = Pbft["state"];
type Ctx = Context<Pbft>;

/** Doubled each time that it was too short, up to the most. */
export const lengthened = (ms: number, times: number, { maxViewChangeMs }: PbftOptions): number =>
  Math.max(ms, Math.min(ms * 2 ** Math.min(times, 30), maxViewChangeMs));

/** What has gone well shortens it again, slowly: so it comes to suit the load, and stays so while that lasts. */
export const eased = (times: number): number => Math.max(0, times - 1 / 8);

export const timeOutMs = (state: State, options: PbftOptions): number =>
  lengthened(options.viewChangeMs, state.failures, options);

/**
 * At a backup the timer runs for one request, and when that is executed, for the oldest that is not: so a primary cannot serve
 * some clients to keep others waiting.
 */
export function watchPending(state: State, options: PbftOptions, ctx: Ctx): void {
  if (state.isChanging) return;
  const { awaited } = state;
  const isOpen =
    awaited !== null &&
    state.pending.some(({ request }) => request.by === awaited.client && request.value.sequence === awaited.sequence);
  if (isOpen) return;
  if (awaited !== null) {
    state.awaited = null;
    ctx.cancelTimer("viewChange");
  }
  const oldest = state.pending[0]?.request;
  if (oldest === undefined || isPrimary(state, ctx.self) || isLast(state, options)) return;
  state.awaited = { client: oldest.by, sequence: oldest.value.sequence };
  ctx.setTimer("viewChange", timeOutMs(state, options));
}

export const isLast = ({ view }: State, { lastView }: PbftOptions): boolean => lastView > 0 && view >= lastView;

/** What is missing may only be late: the timer is left alone while batches are executed. */
export function watchProgress(state: State, options: PbftOptions, ctx: Ctx): void {
  const { statusMs } = options;
  if (statusMs === 0 || state.watched !== null || !isWaiting(state)) return;
  state.watched = state.executed;
  ctx.setTimer("status", lengthened(statusMs, state.failures, options));
}

/** For a new view, a batch that others know of, a state to catch up with. What one replica alone speaks of is nothing to wait for. */
export const isWaiting = (state: State): boolean =>
  state.isChanging ||
  state.goal !== null ||
  Object.entries(state.slots).some(([sequence, slot]) => Number(sequence) > state.executed && isKnown(state, slot));

const isKnown = (state: State, { prePrepare, committed, prepares, commits }: Slot): boolean =>
  prePrepare !== null || committed !== null || nodesIn({ ...prepares, ...commits }).length >= weakQuorum(state);
