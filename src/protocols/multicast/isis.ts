/**
 * Total order by agreement (ISIS ABCAST): all members propose a position for each message, the highest proposal is
 * agreed, and all nodes deliver in the order of the agreed numbers.
 * Birman & Joseph, "Reliable Communication in the Presence of Failures", ACM TOCS 1987; terms of Coulouris et al.
 * §15.4.3.
 *
 *   (1) the sender multicasts m;
 *   (2) each member q, including the sender, proposes P_q = max(A_q, P_q) + 1 for m and inserts m into its hold-back
 *   queue at that position;
 *   (3) the sender picks the highest proposal, breaking ties by the highest id, and multicasts it as agreed. The queue is
 *   sorted again, and its head is delivered once its number is agreed.
 *
 * Assumes   no crashes; reliable links, in any order; one closed group. If the carrier has views, members may crash.
 * Safety    C6: if a member delivers m before m′, every member that delivers m′ has already delivered m. Integrity:
 *           every message is delivered at most once, and only if it was sent. Neither FIFO nor causal order is
 *           guaranteed. Order is a property of deliveries, not of states, so `properties` declares agreement, and the
 *           tests check C6.
 * Liveness  validity: a node that sends a message delivers it. Agreement: a message that one node delivers is delivered
 *           by all.
 * Cost      3(N − 1) messages per multicast, and three message delays until the message can be delivered.
 */
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural, type Shape, text } from "../../core/shape.ts";
import { exclude } from "../node-set.ts";
import {
  areReceived,
  beginning,
  eventually,
  type Group,
  groupCommands,
  isReceived,
  MAX_PAYLOAD_BYTES,
  type OrderOptions,
  type Received,
  received,
  standing,
  withMembers,
} from "./parts/group.ts";
import {
  type GroupCommand,
  type GroupEvent,
  groupCommandShapes,
  type Multicast,
  type Refusal,
} from "./parts/layers.ts";
import { isAfter, move, type Place } from "./parts/places.ts";

/** Vocabulary of total order by agreement. */
export type Isis<P = string> = {
  state: Group<P> & {
    /** The number of messages that this node has multicast. */
    sent: number;
    received: Received[];
    /** A: the highest agreed number that this node knows of. */
    agreed: number;
    /** P: the highest number that this node has proposed. */
    proposed: number;
    /** The hold-back queue, ordered by position. */
    heldBack: Held<P>[];
    /** This node's proposals for queued messages that have no agreed position yet, by id. */
    proposals: Record<string, number>;
    /**
     * For each of this node's messages without an agreed position, the highest proposal so far and the members that
     * have not proposed.
     */
    collected: Record<number, Place & { missing: NodeId[] }>;
  };
  /** `number`: the sender's sequence number for the message, starting at 1. */
  message:
    | { type: "multicast"; number: number; payload: P }
    | { type: "proposal"; view: number; number: number; place: number }
    | { type: "agreed"; number: number; place: number; proposer: NodeId };
  command: Multicast<P>["command"] | GroupCommand;
  event: Multicast<P>["event"] | Refusal<P> | GroupEvent;
};

type Held<P> = Place & { isAgreed: boolean; from: NodeId; number: number; payload: P };

/**
 * The bound on messages in flight. It is never reached, because a sender keeps each message in memory until its
 * position is agreed.
 */
const REACH = 2 ** 24;

/** Whether no correct node can have reached the position. Positions grow by one per message. */
const isAbsurd = ({ agreed, proposed }: Pick<Isis["state"], "agreed" | "proposed">, place: number): boolean =>
  place > Math.max(agreed, proposed) + REACH;

/**
 * Creates total order by agreement.
 * @param payload the shape of the messages; text by default
 * @throws UsageError if an option is unknown or out of range
 */
export function isis<P = string>(
  options?: Partial<OrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<Isis<P>> {
  type State = Isis<P>["state"];
  type Ctx = Context<Isis<P>>;
  // Each multicast takes two carrier messages: one for the message, and one for its agreed position.
  const { group, hasRoom } = beginning<P>(options, "isis", 2);
  const nothing = () => ({ sent: 0, received: [], agreed: 0, proposed: 0, heldBack: [], proposals: {}, collected: {} });
  const idOf = (from: NodeId, number: number): string => `${from}.${number}`;

  /** Proposes the position P_q = max(A_q, P_q) + 1, which comes after all messages in the queue. */
  function propose(from: NodeId, number: number, body: P, state: State, self: NodeId): number {
    state.received = received(state.received, from, number);
    const place = Math.max(state.agreed, state.proposed) + 1;
    state.proposed = place;
    state.proposals[idOf(from, number)] = place;
    state.heldBack.push({ place, proposer: self, isAgreed: false, from, number, payload: body });
    return place;
  }

  /**
   * Sets the agreed position once all members have proposed. While the group is changing, no position is agreed, and
   * `finish` orders the remaining messages.
   */
  function agreeIfComplete(number: number, state: State, ctx: Ctx): void {
    const { missing, place, proposer } = state.collected[number] as Isis["state"]["collected"][number];
    if (missing.length > 0 || state.membership !== "member") return;
    delete state.collected[number];
    ctx.broadcast({ type: "agreed", number, place, proposer });
    agree(idOf(ctx.self, number), { place, proposer }, state, ctx);
  }

  /** Moves the message to its agreed position. Then delivers the agreed messages at the head of the queue. */
  function agree(id: string, to: Place, state: State, ctx: Ctx): void {
    const place = state.proposals[id];
    if (place === undefined) return; // A duplicate: the position has already been agreed.
    delete state.proposals[id];
    state.agreed = Math.max(state.agreed, to.place);
    move(state.heldBack, { place, proposer: ctx.self }, to).isAgreed = true;
    let count = 0;
    for (let head = state.heldBack[0]; head?.isAgreed === true; head = state.heldBack[count]) {
      deliver(head, ctx);
      count += 1;
    }
    if (count > 0) state.heldBack.splice(0, count);
  }

  function deliver({ from, number, payload: body }: Held<P>, ctx: Ctx): void {
    ctx.emit({ type: "delivered", from, payload: body, id: idOf(from, number) });
  }

  return {
    name: "isis",
    init: (self, peers) => ({ ...group(self, peers), ...nothing() }),
    receive: {
      multicast(state, from, { number, payload: body }, ctx) {
        if (isReceived(state.received, from, number)) return; // A duplicate.
        const place = propose(from, number, body, state, ctx.self);
        ctx.send(from, { type: "proposal", view: state.view, number, place });
      },
      proposal(state, from, { view, number, place }, ctx) {
        const own = state.collected[number];
        // The proposal is from a different view, or for a message whose position has already been agreed.
        if (view !== state.view || own === undefined) return;
        if (isAbsurd(state, place)) return;
        exclude(own.missing, from);
        if (isAfter({ place, proposer: from }, own)) Object.assign(own, { place, proposer: from });
        agreeIfComplete(number, state, ctx);
      },
      agreed(state, from, { number, place, proposer }, ctx) {
        if (!isAbsurd(state, place)) agree(idOf(from, number), { place, proposer }, state, ctx);
      },
    },
    command: groupCommands<P, State, Ctx>({
      hasRoom: (state) => hasRoom(state.sent, state),
      multicast(body, state, ctx) {
        state.sent += 1;
        const number = state.sent;
        ctx.broadcast({ type: "multicast", number, payload: body });
        const place = propose(ctx.self, number, body, state, ctx.self);
        const missing = state.members.filter((member) => member !== ctx.self);
        state.collected[number] = { place, proposer: ctx.self, missing };
        agreeIfComplete(number, state, ctx); // A lone member has no proposals to wait for.
      },
      /**
       * Delivers agreed messages first, by number, and then the others, except that no message overtakes an earlier one
       * from the same sender.
       */
      finish(state, ctx) {
        let open = state.heldBack.filter(({ isAgreed }) => !isAgreed);
        open.sort((a, b) => a.from - b.from || a.number - b.number);
        for (const message of state.heldBack.filter(({ isAgreed }) => isAgreed)) {
          const isEarlier = ({ from, number }: Held<P>): boolean => from === message.from && number < message.number;
          for (const earlier of open.filter(isEarlier)) deliver(earlier, ctx);
          open = open.filter((each) => !isEarlier(each));
          deliver(message, ctx);
        }
        for (const message of open) deliver(message, ctx);
      },
      renew: (state) => void Object.assign(state, nothing()),
    }),
    shapes: {
      message: {
        multicast: { number: natural, payload },
        proposal: { view: natural, number: natural, place: natural },
        agreed: { number: natural, place: natural, proposer: natural },
      },
      command: { send: { payload }, ...groupCommandShapes },
    },
    source: "Birman & Joseph, ACM TOCS 1987; Coulouris et al. §15.4.3",
    assumes: ["no crashes, or a lower layer with views", "reliable links", "one closed group"],
    properties: [
      eventually(
        "agreement",
        "every message that a member of the view has received is eventually received by all members, and none is held back forever",
        (world, node) =>
          withMembers(
            world,
            node,
            (one, other) => one.heldBack.length === 0 && areReceived(one.received, other.received),
          ),
      ),
    ],
    costs: [{ when: "one multicast", messages: (nodes) => 3 * (nodes - 1) }],
    view: (state) => standing(state, state.heldBack, ({ from, number }) => idOf(from, number)),
  };
}
