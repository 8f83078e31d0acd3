/**
 * Handles acknowledgements and session messages. Acknowledgements are piggybacked on every message; a node that has no
 * messages to send sends them separately. They determine which messages are stable and can be freed, and thus how much
 * more the sender may send. A node that knows of an unstable message repeatedly sends session messages, so that the
 * loss of the last message or acknowledgement is detected. Once all messages are stable, no node sends anything.
 */
import type { NodeId } from "../../../core/protocol.ts";
import {
  acknowledged,
  type Ctx,
  type IpMulticastOptions,
  type Kept,
  type Message,
  patience,
  receivedVector,
  type State,
  type Stream,
} from "./vocabulary.ts";

// Streams: each member's kept, missing and stable messages. Message numbers index an array that starts after the freed
// messages, so the common path needs no search.

const emptyStream = <P>(members: number): Stream<P> => ({
  acks: Array<number>(members).fill(0),
  stable: 0,
  delivered: 0,
  known: 0,
  freed: 0,
  kept: [],
  noticed: 0,
  requested: 0,
  overdue: 0,
});

/** Returns a node's state at the beginning of a view, or outside the group. Waiting messages are carried over. */
export function stateIn<P>(self: NodeId, view: number, members: NodeId[], waiting: P[]): State<P> {
  return {
    phase: members.length === 0 ? "outside" : "open",
    view,
    members,
    me: members.indexOf(self),
    streams: members.map(() => emptyStream(members.length)),
    waiting,
    unstableBytes: 0,
    isNacking: false,
    isAskingAgain: false,
    isRepairing: false,
    talk: "none",
    fresh: 0,
    hasRequest: false,
    hasSpoken: false,
    attempts: 0,
    repeats: 0,
    repairs: [],
    fill: null,
    promised: null,
  };
}

/** Returns the message with the given number, or null if this node does not keep it. */
export const keptAt = <P>({ kept, freed }: Stream<P>, number: number): Kept<P> | null =>
  kept[number - freed - 1] ?? null;

/** Whether the message has not been received. Freed messages count as received. */
export const isMissing = <P>(stream: Stream<P>, number: number): boolean =>
  number > stream.freed && keptAt(stream, number) === null;

/** Keeps a message for repairs. */
export function keep<P>(stream: Stream<P>, number: number, payload: P): void {
  while (stream.kept.length < number - stream.freed) stream.kept.push(null);
  stream.kept[number - stream.freed - 1] = { payload, repair: "none" };
  stream.known = Math.max(stream.known, number);
}

/** Advances R to the next gap. */
export function advance<P>(state: State<P>, sender: number): void {
  const stream = state.streams[sender] as Stream<P>;
  let received = stream.acks[state.me] as number;
  while (keptAt(stream, received + 1) !== null) received += 1;
  stream.acks[state.me] = received;
}

/** Delivers received messages from a sender in order. */
export function deliverUpTo<P>(state: State<P>, sender: number, last: number, ctx: Ctx<P>): void {
  const stream = state.streams[sender] as Stream<P>;
  while (stream.delivered < last) {
    stream.delivered += 1;
    const { payload } = keptAt(stream, stream.delivered) as Kept<P>;
    tell(state, sender, stream.delivered, payload, ctx);
  }
}

/** Emits `delivered` for a message. */
export function tell<P>(state: State<P>, sender: number, number: number, payload: P, ctx: Ctx<P>): void {
  const from = state.members[sender] as NodeId;
  ctx.emit({ type: "delivered", from, payload, id: `${from}.${number}` });
}

/**
 * Frees messages that are stable and have been delivered here, because no node can still request them. One
 * acknowledgement may free many messages.
 */
function free<P>(stream: Stream<P>): Kept<P>[] {
  const upTo = Math.min(stream.stable, stream.delivered);
  if (upTo <= stream.freed) return [];
  const freed = stream.kept.splice(0, upTo - stream.freed) as Kept<P>[];
  stream.freed = upTo;
  return freed;
}

/** Works out from all acknowledgements which messages are stable. Returns whether any have become stable. */
function settleStable<P>(stream: Stream<P>): boolean {
  let least = stream.acks[0] as number;
  for (const ack of stream.acks) if (ack < least) least = ack;
  if (least <= stream.stable) return false;
  stream.stable = least;
  return true;
}

/** Handles a report from another node that all members have received all messages up to `told`. */
function learnStable<P>(stream: Stream<P>, told: number): boolean {
  if (told <= stream.stable) return false;
  for (let member = 0; member < stream.acks.length; member++)
    if ((stream.acks[member] as number) < told) stream.acks[member] = told;
  stream.stable = told;
  return true;
}

/** Records that this node has sent a message, and thereby its acknowledgements, which every message carries. */
export function haveSpoken<P>(state: State<P>): void {
  state.fresh = 0;
  state.hasRequest = false;
  state.hasSpoken = true;
}

/** Returns a payload's size: 1 per character, 8 per number. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  return Object.values(value).reduce((sum: number, part) => sum + sizeOf(part), 0);
}

export type Sessions<P> = ReturnType<typeof sessions<P>>;

/** Creates the handlers for acknowledgements and session messages. */
export function sessions<P>(options: IpMulticastOptions) {
  const { ackMs, ackEvery, windowMessages, windowBytes, maxWaiting } = options;
  const repeating = patience(options.sessionMs, options.maxSessionMs, options.maxRepeats);

  const own = ({ streams, me }: State<P>): Stream<P> => streams[me] as Stream<P>;

  function speak(state: State<P>, asks: boolean, ctx: Ctx<P>): void {
    const stable = state.streams.map((stream) => stream.stable);
    ctx.broadcast({ type: "session", view: state.view, acks: acknowledged(state), stable, asks });
    haveSpoken(state);
  }

  const isUnstable = ({ streams }: State<P>): boolean => streams.some(({ stable, known }) => stable < known);

  const isUrged = ({ fresh, hasRequest }: State<P>): boolean => fresh > 0 || hasRequest;

  function keepTalking(state: State<P>, ctx: Ctx<P>): void {
    if (!options.sessions || state.phase === "outside") return;
    if (isUrged(state)) {
      if (state.talk === "soon") return;
      state.talk = "soon";
      ctx.setTimer("session", [ackMs / 2, ackMs]);
    } else {
      if (state.talk === "soon") return;
      if (!isUnstable(state)) return fallSilent(state, ctx);
      if (state.talk === "later" || repeating.isOver(state.repeats)) return;
      state.talk = "later";
      ctx.setTimer("session", repeating.waitMs(state.repeats));
    }
    state.hasSpoken = false;
  }

  function fallSilent(state: State<P>, ctx: Ctx<P>): void {
    if (state.talk === "later") ctx.cancelTimer("session");
    state.talk = "none";
  }

  /** Resets the waits to their shortest duration after progress. */
  function goOn(state: State<P>): void {
    if (state.repeats === 0) return;
    state.repeats = 0;
    if (state.talk === "later") state.talk = "none";
  }

  /**
   * Handles the `session` timer. If the node has sent a message in the meantime, that message carried its
   * acknowledgements, so the node only starts the timer again.
   */
  function talk(state: State<P>, ctx: Ctx<P>): void {
    state.talk = "none";
    if (!state.hasSpoken && isUrged(state)) speak(state, false, ctx);
    else if (!state.hasSpoken && isUnstable(state)) {
      state.repeats = repeating.next(state.repeats);
      speak(state, true, ctx);
    }
    keepTalking(state, ctx);
  }

  /**
   * Counts a new message from another node, and acknowledges at once if that is due. `isAlone`: whether all messages
   * before it are stable.
   */
  function count(state: State<P>, isAlone: boolean, ctx: Ctx<P>): void {
    state.fresh += 1;
    const isDue = state.fresh >= ackEvery || (isAlone && options.promptAcks);
    if (options.sessions && isDue) speak(state, false, ctx);
  }

  /** Handles a member's acknowledgements. */
  function hear(state: State<P>, member: number, acks: readonly number[], ctx: Ctx<P>): void {
    for (let sender = 0; sender < acks.length; sender++) {
      const stream = state.streams[sender] as Stream<P>;
      const ack = acks[sender] as number;
      const before = stream.acks[member] as number;
      if (ack <= before) continue;
      stream.acks[member] = ack;
      if (ack > stream.known) stream.known = ack;
      if (before === stream.stable) settle(state, sender, ctx);
    }
  }

  function learn(state: State<P>, sender: number, stable: number, ctx: Ctx<P>): void {
    if (learnStable(state.streams[sender] as Stream<P>, stable)) release(state, sender, ctx);
  }

  /**
   * Runs after a member has acknowledged more of the sender's messages, which may make more of them stable. While the
   * group is changing, no further messages become stable this way.
   */
  function settle(state: State<P>, sender: number, ctx: Ctx<P>): void {
    if (state.promised === null && settleStable(state.streams[sender] as Stream<P>)) release(state, sender, ctx);
  }

  /**
   * Frees messages that have become stable. If they are this node's own, sends waiting messages, because there is room
   * again.
   */
  function release(state: State<P>, sender: number, ctx: Ctx<P>): void {
    const freed = free(state.streams[sender] as Stream<P>);
    goOn(state);
    if (sender !== state.me) return;
    for (const { payload } of freed) state.unstableBytes -= sizeOf(payload);
    ctx.emit({ type: "stable", count: own(state).stable });
    sendWaiting(state, ctx);
  }

  const hasRoom = (state: State<P>, payload: P): boolean => {
    const { known, stable } = own(state);
    if (known === stable) return true; // A single message always fits, no matter how large it is.
    return known - stable < windowMessages && state.unstableBytes + sizeOf(payload) <= windowBytes;
  };

  function send(state: State<P>, payload: P, ctx: Ctx<P>): void {
    if (state.phase === "open" && state.waiting.length === 0 && hasRoom(state, payload))
      return multicast(state, payload, ctx);
    if (state.waiting.length >= maxWaiting) ctx.emit({ type: "refused", payload });
    else state.waiting.push(payload);
  }

  function sendWaiting(state: State<P>, ctx: Ctx<P>): void {
    while (state.phase === "open" && state.waiting.length > 0 && hasRoom(state, state.waiting[0] as P))
      multicast(state, state.waiting.shift() as P, ctx);
  }

  /**
   * Sends the messages that are waiting for room, regardless of the window. They belong to this view, and no more room
   * will become free before the view ends.
   */
  function sayAll(state: State<P>, ctx: Ctx<P>): void {
    for (const payload of state.waiting.splice(0)) multicast(state, payload, ctx);
  }

  function multicast(state: State<P>, payload: P, ctx: Ctx<P>): void {
    const { me, view } = state;
    const stream = own(state);
    const number = stream.known + 1;
    keep(stream, number, payload);
    stream.acks[me] = number;
    state.unstableBytes += sizeOf(payload);
    ctx.broadcast({ type: "data", view, number, stable: stream.stable, acks: receivedVector(state), payload });
    haveSpoken(state);
    deliverUpTo(state, me, number, ctx);
    settle(state, me, ctx); // This node may be the only member.
    goOn(state);
    keepTalking(state, ctx);
  }

  /** Schedules an answer to a request for acknowledgements if this node knows more than its sender. */
  function answer(state: State<P>, { acks, stable, asks }: Message<P, "session">): void {
    if (!asks) return;
    const knowsMore = state.streams.some(
      (stream, sender) =>
        stream.stable > (stable[sender] as number) || (stream.acks[state.me] as number) > (acks[sender] as number),
    );
    if (knowsMore) state.hasRequest = true;
  }

  return { keepTalking, talk, count, hear, settle, learn, send, sendWaiting, sayAll, answer };
}
