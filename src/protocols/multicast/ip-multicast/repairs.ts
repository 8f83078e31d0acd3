/**
 * Detects and repairs losses. After a random wait, a node requests the messages missing in a gap, unless another node
 * requests them first. The sender answers at once. If the request is repeated, it asks the other nodes in turn, because
 * the sender may be unreachable. All other nodes that have the message answer after a random wait, unless another node
 * answers first.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { haveSpoken, isMissing, keptAt } from "./sessions.ts";
import {
  acknowledged,
  type Ctx,
  type IpMulticastOptions,
  type Kept,
  MAX_WANTED,
  patience,
  receivedOf,
  type State,
  type Stream,
  type Wanted,
} from "./vocabulary.ts";

export type Repairs<P> = ReturnType<typeof repairing<P>>;

/** Creates the handlers for nacks and repairs. */
export function repairing<P>(options: IpMulticastOptions) {
  const { nackMs, repairMs } = options;
  const asking = patience(options.repeatMs, options.maxRepeatMs, options.maxRepeats);

  /**
   * Whether there is a missing message that no node has requested. Messages that have been received are not checked
   * again.
   */
  function hasNewGap(state: State<P>, sender: number): boolean {
    const stream = state.streams[sender] as Stream<P>;
    stream.requested = Math.max(stream.requested, receivedOf(state, sender));
    while (stream.requested < stream.known && !isMissing(stream, stream.requested + 1)) stream.requested += 1;
    return stream.requested < stream.known;
  }

  const isWhole = (state: State<P>): boolean =>
    state.streams.every(({ acks, known }) => (acks[state.me] as number) >= known);

  /** Runs after any event that may have revealed or closed a gap. */
  function look(state: State<P>, ctx: Ctx<P>): void {
    if (isWhole(state)) return beAtEase(state, ctx);
    if (!state.isNacking && state.streams.some((_stream, sender) => hasNewGap(state, sender))) {
      state.isNacking = true;
      for (const stream of state.streams) stream.noticed = stream.known;
      ctx.setTimer("nack", [nackMs, 2 * nackMs]);
    }
  }

  function beAtEase(state: State<P>, ctx: Ctx<P>): void {
    forgetNack(state, ctx);
    if (state.isAskingAgain) ctx.cancelTimer("again");
    state.isAskingAgain = false;
    state.attempts = 0;
  }

  function forgetNack(state: State<P>, ctx: Ctx<P>): void {
    if (!state.isNacking) return;
    ctx.cancelTimer("nack");
    state.isNacking = false;
    for (const stream of state.streams) stream.noticed = 0;
  }

  /** Handles the `nack` timer: requests the missing messages that no node has requested yet. */
  function ask(state: State<P>, ctx: Ctx<P>): void {
    state.isNacking = false;
    const wanted: Wanted[] = [];
    for (const [sender, stream] of state.streams.entries()) {
      const from = Math.max(stream.requested, receivedOf(state, sender)) + 1;
      stream.requested = Math.max(stream.requested, addWanted(state, wanted, sender, from, stream.noticed));
      stream.noticed = 0;
    }
    sendNack(state, wanted, ctx);
    askAgainLater(state, ctx);
    look(state, ctx); // There may be newer gaps, or more missing messages than one request can hold.
  }

  /** Handles the `again` timer. */
  function askAgain(state: State<P>, ctx: Ctx<P>): void {
    state.isAskingAgain = false;
    state.attempts = asking.next(state.attempts);
    const wanted: Wanted[] = [];
    for (const [sender, { overdue }] of state.streams.entries())
      addWanted(state, wanted, sender, receivedOf(state, sender) + 1, overdue);
    sendNack(state, wanted, ctx);
    askAgainLater(state, ctx);
  }

  function askAgainLater(state: State<P>, ctx: Ctx<P>): void {
    if (state.isAskingAgain || isWhole(state) || asking.isOver(state.attempts)) return;
    for (const stream of state.streams) stream.overdue = stream.requested;
    state.isAskingAgain = true;
    const waitMs = asking.waitMs(state.attempts);
    ctx.setTimer("again", [waitMs, 1.5 * waitMs]);
  }

  /**
   * Adds the sender's missing messages from number `from` to `last` to the list, up to the sender's share. Returns the
   * last number covered.
   */
  function addWanted(state: State<P>, wanted: Wanted[], sender: number, from: number, last: number): number {
    const stream = state.streams[sender] as Stream<P>;
    // Each sender gets a share, so that no sender has to wait for another. If too many senders have gaps, the rest
    // follow later.
    const behind = state.streams.filter(({ acks, known }) => (acks[state.me] as number) < known).length;
    let room = Math.max(1, Math.floor(MAX_WANTED / behind));
    for (let number = from; number <= last; number++) {
      if (!isMissing(stream, number)) continue;
      if (room === 0 || wanted.length === MAX_WANTED) return number - 1;
      room -= 1;
      const latest = wanted.at(-1);
      const of = state.members[sender] as NodeId;
      if (latest?.sender === of && latest.to === number - 1) latest.to = number;
      else wanted.push({ sender: of, from: number, to: number, at: askedFirst(state, sender) });
    }
    return last;
  }

  // Returns the node that should answer at once. The sender has the message but may be unreachable, so repeated
  // requests ask the other nodes in turn. If the group is changing because the sender has crashed, the holders of the
  // message take turns.
  function askedFirst({ members, me, fill, attempts }: State<P>, sender: number): NodeId {
    if (fill !== null && fill.holders.length > 0)
      return fill.holders[(sender + attempts) % fill.holders.length] as NodeId;
    const others = members.filter((_, place) => place !== me);
    return others[(others.indexOf(members[sender] as NodeId) + attempts) % others.length] as NodeId;
  }

  function sendNack(state: State<P>, wanted: Wanted[], ctx: Ctx<P>): void {
    if (wanted.length === 0) return;
    ctx.broadcast({ type: "nack", view: state.view, acks: acknowledged(state), wanted });
    haveSpoken(state);
  }

  /** Handles a request. This node answers, and does not request the same messages itself. */
  function heed(state: State<P>, wanted: readonly Wanted[], ctx: Ctx<P>): void {
    for (const { sender: of, from, to, at } of wanted) {
      const sender = state.members.indexOf(of);
      const stream = state.streams[sender] as Stream<P>;
      for (let number = from; number <= to; number++) owe(state, sender, number, at === ctx.self, ctx);
      let requested = Math.max(stream.requested, receivedOf(state, sender));
      while (
        requested < stream.known &&
        (!isMissing(stream, requested + 1) || (requested + 1 >= from && requested + 1 <= to))
      )
        requested += 1;
      stream.requested = requested;
    }
    if (!state.streams.some((_stream, sender) => hasNewGap(state, sender))) forgetNack(state, ctx);
    // The other node's request restarts this node's wait.
    if (isAskedAgain(state, wanted)) state.isAskingAgain = false;
    askAgainLater(state, ctx);
  }

  /** Whether another node has just requested all the messages that this node would request again. */
  function isAskedAgain(state: State<P>, wanted: readonly Wanted[]): boolean {
    let isAnything = false;
    for (const [sender, stream] of state.streams.entries()) {
      const ranges = wanted.filter((range) => range.sender === state.members[sender]);
      for (let number = receivedOf(state, sender) + 1; number <= stream.overdue; number++) {
        if (!isMissing(stream, number)) continue;
        if (!ranges.some(({ from, to }) => from <= number && number <= to)) return false;
        isAnything = true;
      }
    }
    return isAnything;
  }

  function owe(state: State<P>, sender: number, number: number, isAskedFirst: boolean, ctx: Ctx<P>): void {
    const kept = keptAt(state.streams[sender] as Stream<P>, number);
    if (kept === null || kept.repair === "recent") return;
    if (kept.repair === "none") state.repairs.push({ sender, number });
    kept.repair = "owed";
    if (isAskedFirst) sendRepair(state, sender, number, kept, ctx);
    restBetweenRepairs(state, ctx);
  }

  function restBetweenRepairs(state: State<P>, ctx: Ctx<P>): void {
    if (state.isRepairing || state.repairs.length === 0) return;
    state.isRepairing = true;
    ctx.setTimer("repair", [repairMs, 2 * repairMs]);
  }

  function sendRepair(state: State<P>, sender: number, number: number, kept: Kept<P>, ctx: Ctx<P>): void {
    const { stable } = state.streams[sender] as Stream<P>;
    const of = state.members[sender] as NodeId;
    const acks = acknowledged(state);
    ctx.broadcast({ type: "repair", view: state.view, sender: of, number, stable, acks, payload: kept.payload });
    kept.repair = "recent";
    haveSpoken(state);
  }

  /**
   * Handles the `repair` timer: sends the repairs that no other node has sent. From now on, messages that were repaired
   * in the previous interval may be requested again.
   */
  function repair(state: State<P>, ctx: Ctx<P>): void {
    const before = state.repairs;
    state.isRepairing = false;
    state.repairs = [];
    for (const { sender, number } of before) {
      const kept = keptAt(state.streams[sender] as Stream<P>, number);
      if (kept === null) continue; // All members have the message.
      if (kept.repair === "owed") {
        sendRepair(state, sender, number, kept, ctx);
        state.repairs.push({ sender, number });
      } else kept.repair = "none";
    }
    restBetweenRepairs(state, ctx);
  }

  /** Cancels a repair because another node has sent it. */
  function spare(stream: Stream<P>, number: number): void {
    const kept = keptAt(stream, number);
    if (kept?.repair === "owed") kept.repair = "recent";
  }

  /** Runs when a missing message has arrived. The waits for the remaining messages start again from the shortest. */
  function takeHeart(state: State<P>, ctx: Ctx<P>): void {
    state.attempts = 0;
    if (
      state.streams.some(({ requested, known }, sender) => requested > receivedOf(state, sender) && requested <= known)
    )
      askAgainLater(state, ctx);
  }

  return { look, takeHeart, ask, askAgain, heed, repair, spare, beAtEase };
}
