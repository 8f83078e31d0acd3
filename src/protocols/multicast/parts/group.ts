/**
 * The group state of every order, and its reactions to changes of the group. Directly over links, the group consists of
 * all nodes and is fixed. A carrier with views reports the members (`layers.ts`), and all counters restart in each view.
 */
import type { LeadsTo, NodeId, Property, StateOf, View, Vocabulary, World } from "../../../core/protocol.ts";
import { natural, nullable, oneOf } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, withFixed } from "../../options.ts";
import type { GroupEvent, Refusal } from "./layers.ts";

/** The number of held-back messages in a node's view. It is limited, so that the view stays readable. */
const MAX_SHOWN = 16;

export const heldIds = <Message>(queue: readonly Message[], idOf: (message: Message) => string): string[] =>
  queue.slice(0, MAX_SHOWN).map(idOf);

// Compact sets of received messages: numbers without a gap are stored as one number.

export type Received = {
  from: NodeId;
  /** All messages from 1 up to this number. */
  upTo: number;
  /** Numbers beyond a gap, ascending. */
  beyond: number[];
};

export function isReceived(all: readonly Received[], from: NodeId, number: number): boolean {
  const of = all.find((each) => each.from === from);
  return of !== undefined && (number <= of.upTo || of.beyond.includes(number));
}

/** Whether all of the others are among these. */
export const areReceived = (all: readonly Received[], others: readonly Received[]): boolean =>
  others.every(({ from, upTo, beyond }) =>
    [upTo, ...beyond].every((number) => number === 0 || isReceived(all, from, number)),
  );

/** Adds a number that is not in the set yet. Senders are ascending. */
export function received(all: readonly Received[], from: NodeId, number: number): Received[] {
  const before = all.find((each) => each.from === from) ?? { from, upTo: 0, beyond: [] };
  const beyond = [...before.beyond, number].sort((a, b) => a - b);
  let { upTo } = before;
  while (beyond[0] === upTo + 1) upTo = beyond.shift() as number;
  const others = all.filter((each) => each.from !== from);
  return [...others, { from, upTo, beyond }].sort((a, b) => a.from - b.from);
}

// Liveness of one node: the condition holds or eventually holds, unless the node crashes. Recurring timers do not mask
// violations.

export const eventually = <V extends Vocabulary>(
  name: string,
  claim: string,
  holds: (world: World<StateOf<V>>, node: NodeId) => boolean,
): LeadsTo<V> => ({ name, claim, when: "leadsTo", given: (world, node) => !holds(world, node), holds });

export interface Group<P> {
  /** 0 if no view has been installed. */
  view: number;
  /** Ascending, including this node; empty outside. */
  members: NodeId[];
  /** `changing`: multicasts are blocked until the next view. `outside`: this node is in no view. */
  membership: "member" | "changing" | "outside";
  /** Messages sent by the user while multicasts were blocked or the carrier had no room. */
  waiting: P[];
  /**
   * The number of its own messages of this view that all members have, according to its carrier. 0 if the carrier does
   * not report it.
   */
  stable: number;
}

export const MAX_PAYLOAD_BYTES = 65_536;

/** The maximum number of waiting messages. Further ones are refused. */
const MAX_WAITING = 1_000;

const orderOptions = (owner: string, least: number) =>
  optionTable(
    owner,
    {
      begin: option(oneOf("inside", "outside"), "inside", "with views, a node begins outside the group"),
      room: option(
        nullable(natural),
        null,
        "how many unstable messages of this node the carrier is sure to accept; further ones wait. `null`: for links; the node stops if the carrier refuses a message",
      ),
    },
    ({ room }, refuse) => {
      if (room !== null && room < least) refuse("room", `at least ${least}`);
    },
  );

/** Options of an order over a carrier. */
export type OrderOptions = OptionsOf<ReturnType<typeof orderOptions>>;

/**
 * The initial group of a node, and a function that checks whether there is room for another message.
 * @param each the number of carrier messages per multicast of the order.
 */
export function beginning<P>(given: Partial<OrderOptions> | undefined, owner: string, each = 1) {
  // The carrier sets these options.
  const { begin, room } = withFixed(["begin", "room"], () => orderOptions(owner, each).settle(given));
  return {
    group(self: NodeId, peers: readonly NodeId[]): Group<P> {
      const rest = { view: 0, waiting: [], stable: 0 };
      return begin === "outside"
        ? { ...rest, members: [], membership: "outside" }
        : { ...rest, members: [self, ...peers].sort((a, b) => a - b), membership: "member" };
    },
    /** Also counts messages that the order still has to send for earlier multicasts. */
    hasRoom: (sent: number, { stable }: Group<P>): boolean => room === null || (sent + 1) * each - stable <= room,
  };
}

interface Order<P, S, C> {
  /** Room for one more multicast of this node. */
  hasRoom(state: S, self: NodeId): boolean;
  multicast(payload: P, state: S, ctx: C): void;
  /** Ends a view: delivers the messages that all surviving members still deliver, in the same order everywhere. */
  finish(state: S, ctx: C): void;
  /** Resets the state of the previous view. `members` already lists the new members. */
  renew(state: S): void;
}

/** The reactions of an order to sends of its user and to changes of its group. */
export function groupCommands<
  P,
  S extends Group<P>,
  C extends { readonly self: NodeId; emit(event: GroupEvent | Refusal<P>): void },
>(order: Order<P, S, C>) {
  const mayMulticast = (state: S, { self }: C): boolean => state.membership === "member" && order.hasRoom(state, self);

  function sendWaiting(state: S, ctx: C): void {
    while (state.waiting.length > 0 && mayMulticast(state, ctx))
      order.multicast(state.waiting.shift() as P, state, ctx);
  }

  return {
    send(state: S, { payload }: { payload: P }, ctx: C): void {
      if (state.waiting.length === 0 && mayMulticast(state, ctx)) order.multicast(payload, state, ctx);
      else if (state.waiting.length < MAX_WAITING) state.waiting.push(payload);
      else ctx.emit({ type: "refused", payload });
    },
    block(state: S, _command: object, ctx: C): void {
      if (state.membership !== "member") return; // It is blocked already, or in no view.
      state.membership = "changing";
      ctx.emit({ type: "blocked" });
    },
    install(state: S, { view, members }: { view: number; members: NodeId[] }, ctx: C): void {
      if (state.membership !== "outside") order.finish(state, ctx);
      Object.assign(state, { view, members: members.toSorted((a, b) => a - b), membership: "member", stable: 0 });
      order.renew(state);
      ctx.emit({ type: "installed", view, members });
      sendWaiting(state, ctx);
    },
    eject(state: S, _command: object, ctx: C): void {
      Object.assign(state, { members: [], membership: "outside", stable: 0 });
      order.renew(state); // Others may have delivered the undelivered messages in another order.
      ctx.emit({ type: "ejected" });
    },
    stable(state: S, { count }: { count: number }, ctx: C): void {
      state.stable = count;
      sendWaiting(state, ctx);
    },
  };
}

/** A node's view, for drawings. `held`: the messages of its hold-back queue. */
export function standing<M>(
  { membership, view }: Group<unknown>,
  held: readonly M[],
  idOf: (message: M) => string,
): View {
  const inGroup = held.length > 0 ? "holding back" : "up to date";
  const role = membership === "member" ? inGroup : membership;
  return { role, held: heldIds(held, idOf), ...(view > 0 ? { term: view } : {}) };
}

/** Whether a predicate holds for any two alive members of the same view. */
const betweenMembers = <S extends Group<unknown>>(
  world: World<S>,
  isTrue: (one: S, other: S, others: NodeId) => boolean,
): boolean => world.alive.every((node) => withMembers(world, node, isTrue));

/** Whether a predicate holds for a node and each alive member of its view, including itself. */
export function withMembers<S extends Group<unknown>>(
  { alive, state }: World<S>,
  node: NodeId,
  isTrue: (one: S, other: S, others: NodeId) => boolean,
): boolean {
  const one = state(node);
  return (
    one.membership === "outside" ||
    alive.every((id) => {
      const other = state(id);
      return other.view !== one.view || other.membership === "outside" || isTrue(one, other, id);
    })
  );
}

/** Whether one vector is at least the other in every component. */
export const covers = (one: readonly number[], other: readonly number[]): boolean =>
  other.every((count, place) => count <= (one[place] ?? 0));

/** Adds a message to the hold-back queue and delivers all deliverable ones. Each delivery may enable another. */
export function holdBack<M>(
  heldBack: M[],
  received: M,
  isNext: (held: M) => boolean,
  deliver: (next: M) => void,
): void {
  heldBack.push(received);
  for (let next = heldBack.find(isNext); next !== undefined; next = heldBack.find(isNext)) {
    deliver(next);
    heldBack.splice(heldBack.indexOf(next), 1);
  }
}

interface Holding extends Group<unknown> {
  heldBack: readonly unknown[];
}

/** Properties of an order that counts the delivered messages of each member. */
export const countingProperties = <S extends Holding>(
  deliveredOf: (state: S, node: NodeId) => number,
  counts: (state: S) => readonly number[],
): Property<Vocabulary & { state: S }>[] => [
  {
    name: "integrity",
    claim: "no node has delivered more messages from a member than the member has sent",
    when: "always",
    holds: (world) => betweenMembers(world, (node, sender, of) => deliveredOf(node, of) <= deliveredOf(sender, of)),
  },
  eventually(
    "agreement",
    "every message that a member of the view has delivered is eventually delivered by all, and none is held back forever",
    (world, node) =>
      withMembers(world, node, (one, other) => one.heldBack.length === 0 && covers(counts(one), counts(other))),
  ),
];
