/**
 * The group state that all orders share, and their reactions to group changes. Directly over links, the group is fixed
 * and consists of all nodes. Over a carrier with views, the carrier reports the members (`layers.ts`), and all counters
 * restart in each view.
 */
import type { LeadsTo, NodeId, Property, StateOf, View, Vocabulary, World } from "../../../core/protocol.ts";
import { natural, nullable, oneOf } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, withFixed } from "../../options.ts";
import type { GroupEvent, Refusal } from "./layers.ts";

/** The maximum number of held-back messages to show in a node's view, so that the view stays readable. */
const MAX_SHOWN = 16;

/** Returns the ids of held-back messages, for the view. */
export const heldIds = <Message>(queue: readonly Message[], idOf: (message: Message) => string): string[] =>
  queue.slice(0, MAX_SHOWN).map(idOf);

// Compact sets of received messages: contiguous numbers are stored as a single number.

/** The messages received from one sender. */
export type Received = {
  from: NodeId;
  /** The last message before the first gap. */
  upTo: number;
  /** The numbers received beyond a gap, in ascending order. */
  beyond: number[];
};

/** Whether a message has already been received. */
export function isReceived(all: readonly Received[], from: NodeId, number: number): boolean {
  const of = all.find((each) => each.from === from);
  return of !== undefined && (number <= of.upTo || of.beyond.includes(number));
}

/** Whether `all` contains all of `others`. */
export const areReceived = (all: readonly Received[], others: readonly Received[]): boolean =>
  others.every(({ from, upTo, beyond }) =>
    [upTo, ...beyond].every((number) => number === 0 || isReceived(all, from, number)),
  );

/** Returns the set with the number added. The set must not contain the number yet. Senders are in ascending order. */
export function received(all: readonly Received[], from: NodeId, number: number): Received[] {
  const before = all.find((each) => each.from === from) ?? { from, upTo: 0, beyond: [] };
  const beyond = [...before.beyond, number].sort((a, b) => a - b);
  let { upTo } = before;
  while (beyond[0] === upTo + 1) upTo = beyond.shift() as number;
  const others = all.filter((each) => each.from !== from);
  return [...others, { from, upTo, beyond }].sort((a, b) => a.from - b.from);
}

// Liveness of a single node: the condition holds now or eventually, unless the node crashes. Recurring timers do not
// mask violations.

/** Creates a property that each live node eventually satisfies. */
export const eventually = <V extends Vocabulary>(
  name: string,
  claim: string,
  holds: (world: World<StateOf<V>>, node: NodeId) => boolean,
): LeadsTo<V> => ({ name, claim, when: "leadsTo", given: (world, node) => !holds(world, node), holds });

/** The state of the group in an ordering layer. */
export interface Group<P> {
  /** The number of the current view. 0 if no view has been installed. */
  view: number;
  /** The members, including this node, in ascending order. Empty if this node is not in a view. */
  members: NodeId[];
  /** `changing`: multicasts are blocked until the next view. `outside`: this node is not in a view. */
  membership: "member" | "changing" | "outside";
  /** Messages that the user sent while multicasts were blocked or the carrier had no room. */
  waiting: P[];
  /**
   * The number of this node's messages in this view that all members have, according to the carrier. 0 if the carrier
   * does not report it.
   */
  stable: number;
}

/** The maximum size of a text payload. */
export const MAX_PAYLOAD_BYTES = 65_536;

/** The maximum number of waiting messages. Any others are refused. */
const MAX_WAITING = 1_000;

const orderOptions = (owner: string, least: number) =>
  optionTable(
    owner,
    {
      begin: option(oneOf("inside", "outside"), "inside", "with views, a node begins outside the group"),
      room: option(
        nullable(natural),
        null,
        "how many of this node's unstable messages the layer below is certain to accept; any others wait. Use `null` for links: the node stops if the layer below refuses a message",
      ),
    },
    ({ room }, refuse) => {
      if (room !== null && room < least) refuse("room", `at least ${least}`);
    },
  );

/** Options for an order over a carrier. */
export type OrderOptions = OptionsOf<ReturnType<typeof orderOptions>>;

/**
 * Returns a node's initial group, and a function that checks whether there is room for another message.
 * @param each the number of carrier messages that the order sends per multicast.
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
    /** Whether there is room, taking into account messages that the order still has to send for earlier multicasts. */
    hasRoom: (sent: number, { stable }: Group<P>): boolean => room === null || (sent + 1) * each - stable <= room,
  };
}

interface Order<P, S, C> {
  /** Whether there is room for one more multicast from this node. */
  hasRoom(state: S, self: NodeId): boolean;
  multicast(payload: P, state: S, ctx: C): void;
  /**
   * Ends a view by delivering the remaining messages that all surviving members deliver, in the same order everywhere.
   */
  finish(state: S, ctx: C): void;
  /** Resets the previous view's state. `members` already lists the new members. */
  renew(state: S): void;
}

/** Creates an order's command handlers, which handle messages from its user and changes to its group. */
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
      if (state.membership !== "member") return; // This node is already blocked, or not in a view.
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
      order.renew(state); // Other members may have delivered the undelivered messages in a different order.
      ctx.emit({ type: "ejected" });
    },
    stable(state: S, { count }: { count: number }, ctx: C): void {
      state.stable = count;
      sendWaiting(state, ctx);
    },
  };
}

/** Returns a node's view, for drawings. `held`: the messages in its hold-back queue. */
export function standing<M>(
  { membership, view }: Group<unknown>,
  held: readonly M[],
  idOf: (message: M) => string,
): View {
  const inGroup = held.length > 0 ? "holding back" : "up to date";
  const role = membership === "member" ? inGroup : membership;
  return { role, held: heldIds(held, idOf), ...(view > 0 ? { term: view } : {}) };
}

/** Whether the predicate holds for any two live members of the same view. */
const betweenMembers = <S extends Group<unknown>>(
  world: World<S>,
  isTrue: (one: S, other: S, others: NodeId) => boolean,
): boolean => world.alive.every((node) => withMembers(world, node, isTrue));

/** Whether the predicate holds for the node paired with each live member of its view, including itself. */
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

/** Whether every component of one vector is at least the other's. */
export const covers = (one: readonly number[], other: readonly number[]): boolean =>
  other.every((count, place) => count <= (one[place] ?? 0));

/**
 * Adds a message to the hold-back queue, then delivers all messages that can be delivered. Each delivery may enable
 * another.
 */
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

/** Creates the properties for an order that counts the messages delivered from each member. */
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
    "every message that a member of the view has delivered is eventually delivered by all members, and none is held back forever",
    (world, node) =>
      withMembers(world, node, (one, other) => one.heldBack.length === 0 && covers(counts(one), counts(other))),
  ),
];
