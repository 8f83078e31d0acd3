/**
 * The messages of each member: what is kept of them, what is missing, what is stable. Numbers are places in an array that
 * begins after what has been freed, so nothing is searched for on the usual path.
 */
import type { NodeId } from "../../../core/protocol.ts";
import type { Ctx, Kept, State, Stream } from "./vocabulary.ts";

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

/** The state of a node in a view that has just begun, or outside of all of them. What waits goes with it. */
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

export const keptAt = <P>({ kept, freed }: Stream<P>, number: number): Kept<P> | null =>
  kept[number - freed - 1] ?? null;

/** Not received; those that have been freed have been. */
export const isMissing = <P>(stream: Stream<P>, number: number): boolean =>
  number > stream.freed && keptAt(stream, number) === null;

export function keep<P>(stream: Stream<P>, number: number, payload: P): void {
  while (stream.kept.length < number - stream.freed) stream.kept.push(null);
  stream.kept[number - stream.freed - 1] = { payload, repair: "none" };
  stream.known = Math.max(stream.known, number);
}

/** R goes up to the next gap. */
export function advance<P>(state: State<P>, sender: number): void {
  const stream = state.streams[sender] as Stream<P>;
  let received = stream.acks[state.me] as number;
  while (keptAt(stream, received + 1) !== null) received += 1;
  stream.acks[state.me] = received;
}

export function deliverUpTo<P>(state: State<P>, sender: number, last: number, ctx: Ctx<P>): void {
  const stream = state.streams[sender] as Stream<P>;
  while (stream.delivered < last) {
    stream.delivered += 1;
    const { payload } = keptAt(stream, stream.delivered) as Kept<P>;
    tell(state, sender, stream.delivered, payload, ctx);
  }
}

export function tell<P>(state: State<P>, sender: number, number: number, payload: P, ctx: Ctx<P>): void {
  const from = state.members[sender] as NodeId;
  ctx.emit({ type: "delivered", from, payload, id: `${from}.${number}` });
}

/** Nobody will ask for it any more, and it has been delivered here. Acknowledgements free many at a time. */
export function free<P>(stream: Stream<P>): Kept<P>[] {
  const upTo = Math.min(stream.stable, stream.delivered);
  if (upTo <= stream.freed) return [];
  const freed = stream.kept.splice(0, upTo - stream.freed) as Kept<P>[];
  stream.freed = upTo;
  return freed;
}

/** What is stable follows from what all have acknowledged. Whether it has grown. */
export function settleStable<P>(stream: Stream<P>): boolean {
  let least = stream.acks[0] as number;
  for (const ack of stream.acks) if (ack < least) least = ack;
  if (least <= stream.stable) return false;
  stream.stable = least;
  return true;
}

/** Up to here every member has received all, says somebody who knows. */
export function learnStable<P>(stream: Stream<P>, told: number): boolean {
  if (told <= stream.stable) return false;
  for (let member = 0; member < stream.acks.length; member++)
    if ((stream.acks[member] as number) < told) stream.acks[member] = told;
  stream.stable = told;
  return true;
}

/** Everything that a node sends says what it has received. */
export function haveSpoken<P>(state: State<P>): void {
  state.fresh = 0;
  state.hasRequest = false;
  state.hasSpoken = true;
}

/** How much a payload is: a character counts one, a number eight. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  return Object.values(value).reduce((sum: number, part) => sum + sizeOf(part), 0);
}
