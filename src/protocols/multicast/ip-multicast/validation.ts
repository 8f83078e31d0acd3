/**
 * Messages that are dropped: of other views, of strangers, and such as nobody who follows the protocol sends. A number is
 * bounded by what this node has received, since nobody is more than its reach ahead of the slowest.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { type IpMulticastOptions, reachOf } from "./options.ts";
import { MAX_WANTED, type Message, receivedOf, type State, type Wanted } from "./vocabulary.ts";

type Bounds = Pick<IpMulticastOptions, "windowMessages" | "maxWaiting">;

/** Late, early, or not of a member. What is early will be repaired. */
export const isOfAnotherView = <P>({ phase, view, members }: State<P>, of: number, from: NodeId): boolean =>
  phase === "outside" || of !== view || !members.includes(from);

/** Acknowledges what cannot have been sent. */
function isAbsurdVector<P>(state: State<P>, bounds: Bounds, acks: readonly number[]): boolean {
  return acks.length !== state.members.length || acks.some((ack, sender) => ack > highestOf(state, sender, bounds));
}

/** The highest number that a member can have used; this node's own it knows. */
const highestOf = <P>(state: State<P>, sender: number, bounds: Bounds): number =>
  receivedOf(state, sender) + (sender === state.me ? 0 : reachOf(bounds));

/** Whether the next view can begin with that cut: this node holds all of it, and has delivered nothing beyond. */
export const isCutOf = <P>(state: State<P>, cut: readonly number[]): boolean =>
  cut.length === state.members.length &&
  cut.every((last, sender) => receivedOf(state, sender) >= last && (state.streams[sender]?.delivered ?? 0) <= last);

/** A data message or a repair: `from` is whose message it is. */
export function isAbsurdMessage<P>(
  state: State<P>,
  bounds: Bounds,
  { from, number, stable, acks }: { from: NodeId; number: number; stable: number; acks: readonly number[] },
): boolean {
  const sender = state.members.indexOf(from);
  return (
    sender < 0 ||
    number < 1 ||
    number > highestOf(state, sender, bounds) ||
    stable > receivedOf(state, sender) ||
    isAbsurdVector(state, bounds, acks)
  );
}

export function isAbsurdNack<P>(
  state: State<P>,
  bounds: Bounds,
  { acks, wanted }: { acks: readonly number[]; wanted: readonly Wanted[] },
): boolean {
  const isAbsurdWish = ({ sender, from, to }: Wanted): boolean => {
    const place = state.members.indexOf(sender);
    return place < 0 || from < 1 || to < from || to - from >= MAX_WANTED || to > highestOf(state, place, bounds);
  };
  return isAbsurdVector(state, bounds, acks) || wanted.some(isAbsurdWish);
}

export function isAbsurdSession<P>(state: State<P>, bounds: Bounds, { acks, stable }: Message<P, "session">): boolean {
  return (
    isAbsurdVector(state, bounds, acks) ||
    stable.length !== state.members.length ||
    stable.some((upTo, sender) => upTo > receivedOf(state, sender))
  );
}
