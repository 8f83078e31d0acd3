/**
 * What every order keeps of its group, and what it does when the group changes. Alone over links the group is all nodes and
 * stays so; a carrier with views says who is in it (`layers.ts`), and everything is counted anew in each view.
 */
import type { LeadsTo, NodeId, Property, StateOf, View, Vocabulary, World } from "../../../core/protocol.ts";
import { natural, nullable, oneOf } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable, withFixed } from "../../options.ts";
import type { GroupEvent, Refusal } from "./layers.ts";

/** What a node's picture shows of its hold-back queue: enough to read, however long the queue is. */
const MAX_SHOWN = 16;

export const heldIds = <Message>(queue: readonly Message[], idOf: (message: Message) => string): string[] =>
  queue.slice(0, MAX_SHOWN).map(idOf);

// Which messages have come of which sender, in little room: numbers without a gap are one number.

export type Received = {
  from: NodeId;
  /** All messages up to this one, which count from 1. */
  upTo: number;
  /** Beyond a gap, ascending. */
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

/** The same with one more, which is not among them yet; senders ascend. */
export function received(all: readonly Received[], from: NodeId, number: number): Received[] {
  const before = all.find((each) => each.from === from) ?? { from, upTo: 0, beyond: [] };
  const beyond = [...before.beyond, number].sort((a, b) => a - b);
  let { upTo } = before;
  while (beyond[0] === upTo + 1) upTo = beyond.shift() as number;
  const others = all.filter((each) => each.from !== from);
  return [...others, { from, upTo, beyond }].sort((a, b) => a.from - b.from);
}

// Liveness of one node: it holds, or comes to hold, unless the node crashes. Timers that run for ever do not hide it.

export const eventually = <V extends Vocabulary>(
  name: string,
  claim: string,
  holds: (world: World<StateOf<V>>, node: NodeId) => boolean,
): LeadsTo<V> => ({ name, claim, when: "leadsTo", given: (world, node) => !holds(world, node), holds });

export interface Group<P> {
  /** 0 where no view has been installed. */
  view: number;
  /** Ascending, this node among them; empty outside. */
  members: NodeId[];
  /** `changing`: nothing can be multicast until the next view. `outside`: this node is in no view. */
  membership: "member" | "changing" | "outside";
  /** What the user has sent when nothing could be multicast, or the carrier had no room. */
  waiting: P[];
  /** How many messages of its own, of this view, its carrier has brought to all members; 0 where it does not say. */
  stable: number;
}

export const MAX_PAYLOAD_BYTES = 65_536;

/** So much of what the user sends waits, before more is refused. */
const MAX_WAITING = 1_000;

const orderOptions = (owner: string, least: number) =>
  optionTable(
    owner,
    {
      begin: option(oneOf("inside", "outside"), "inside", "with views, a node begins outside the group"),
      room: option(
        nullable(natural),
        null,
        "how many of its own messages that not all members have the carrier takes for certain; more wait. `null`: over links, a carrier without room ends the node",
      ),
    },
    ({ room }, refuse) => {
      if (room !== null && room < least) refuse("room", `at least ${least}`);
    },
  );

export type OrderOptions = OptionsOf<ReturnType<typeof orderOptions>>;

/**
 * The group in which a node begins, and whether there is room for one message more.
 * @param each how many messages of its own each of an order's multicasts takes, sooner or later.
 */
export function beginning<P>(given: Partial<OrderOptions> | undefined, owner: string, each = 1) {
  // Its carrier sets them.
  const { begin, room } = withFixed(["begin", "room"], () => orderOptions(owner, each).settle(given));
  return {
    group(self: NodeId, peers: readonly NodeId[]): Group<P> {
      const rest = { view: 0, waiting: [], stable: 0 };
      return begin === "outside"
        ? { ...rest, members: [], membership: "outside" }
        : { ...rest, members: [self, ...peers].sort((a, b) => a - b), membership: "member" };
    },
    /** What it still owes for those that it has sent counts, too. */
    hasRoom: (sent: number, { stable }: Group<P>): boolean => room === null || (sent + 1) * each - stable <= room,
  };
}

interface Order<P, S, C> {
  /** For one more of this node's own. */
  hasRoom(state: S, self: NodeId): boolean;
  multicast(payload: P, state: S, ctx: C): void;
  /** The end of a view: delivers what all who go on still deliver of it, in the same order everywhere. */
  finish(state: S, ctx: C): void;
  /** Forgets what was of the view before; `members` are those of the new one. */
  renew(state: S): void;
}

/** What an order does when its user sends and when its group changes. */
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
      order.renew(state); // What was not delivered here, others may have delivered in another order.
      ctx.emit({ type: "ejected" });
    },
    stable(state: S, { count }: { count: number }, ctx: C): void {
      state.stable = count;
      sendWaiting(state, ctx);
    },
  };
}

/** How a node stands, for pictures: `held` are the messages of its hold-back queue. */
export function standing<M>(
  { membership, view }: Group<unknown>,
  held: readonly M[],
  idOf: (message: M) => string,
): View {
  const inGroup = held.length > 0 ? "holding back" : "up to date";
  const role = membership === "member" ? inGroup : membership;
  return { role, held: heldIds(held, idOf), ...(view > 0 ? { term: view } : {}) };
}

/** Whether something is true of any two alive members of the same view. */
const betweenMembers = <S extends Group<unknown>>(
  world: World<S>,
  isTrue: (one: S, other: S, others: NodeId) => boolean,
): boolean => world.alive.every((node) => withMembers(world, node, isTrue));

/** Whether something is true of a node and each alive member of its view, itself among them. */
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

/** Whether one vector is at least another in every place. */
export const covers = (one: readonly number[], other: readonly number[]): boolean =>
  other.every((count, place) => count <= (one[place] ?? 0));

/** Takes a message into the hold-back queue and delivers all that is next: each delivery may make way for another. */
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

/** What an order promises whose nodes count the messages of each member that they have delivered. */
export const countingProperties = <S extends Holding>(
  deliveredOf: (state: S, node: NodeId) => number,
  counts: (state: S) => readonly number[],
): Property<Vocabulary & { state: S }>[] => [
  {
    name: "integrity",
    claim: "nobody has delivered more of a member's messages than it has sent",
    when: "always",
    holds: (world) => betweenMembers(world, (node, sender, of) => deliveredOf(node, of) <= deliveredOf(sender, of)),
  },
  eventually(
    "agreement",
    "what anybody in its view has delivered everybody delivers then or later, and holds nothing back for ever",
    (world, node) =>
      withMembers(world, node, (one, other) => one.heldBack.length === 0 && covers(counts(one), counts(other))),
  ),
];
