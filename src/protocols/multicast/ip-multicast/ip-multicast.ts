/**
 * Reliable multicast over IP multicast: a message is sent once, in one datagram, and acknowledgements are piggybacked
 * on other messages. A node that detects a missing message requests it, and any node that has the message may reply.
 * Coulouris et al. §15.4.2; back-off, suppression and session messages as in Floyd, Jacobson, Liu, McCanne & Zhang, "A
 * Reliable Multicast Framework for Light-weight Sessions and Application Level Framing", IEEE/ACM ToN 1997 (SRM).
 *
 * Assumes   no crashes, unless it runs together with `views`; datagrams may be lost, duplicated and reordered, but not
 *           forever.
 * Safety    integrity: every message is delivered at most once, and only if it was sent; validity: a sender delivers
 *           its own messages; messages from the same sender are delivered in the order they were sent; a node keeps at
 *           most one window of each sender's messages or, while the group is changing, at most twice the window plus
 *           the waiting messages.
 * Liveness  agreement: a message that one node delivers is eventually delivered by all, and then no longer kept.
 * Cost      one datagram per multicast if other nodes also send; after a pause, one acknowledgement from each of the N
 *           − 1 other nodes; one negative acknowledgement and one repair for each loss.
 */
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { covers, eventually, heldIds } from "../parts/group.ts";
import { repairing } from "./repairs.ts";
import { advance, deliverUpTo, isMissing, keep, sessions, stateIn, tell } from "./sessions.ts";
import { viewChanges } from "./view-changes.ts";
import {
  type Ctx,
  commandShapes,
  type IpMulticast,
  type IpMulticastOptions,
  ipMulticastOptions,
  isAbsurdMessage,
  isAbsurdNack,
  isAbsurdSession,
  isOfAnotherView,
  messageShapes,
  type Place,
  reachOf,
  receivedOf,
  receivedVector,
  type State,
  type Stream,
} from "./vocabulary.ts";

type Group<P> = World<State<P>>;

/** Whether the predicate holds for all pairs of nodes in the same view. */
function everyPair<P>({ alive, state }: Group<P>, holds: (a: State<P>, b: State<P>) => boolean): boolean {
  const inside = alive.map((node) => state(node)).filter(({ phase }) => phase !== "outside");
  return inside.every((a) => inside.every((b) => a.view !== b.view || holds(a, b)));
}

function properties<P>({ sessions, ...bounds }: IpMulticastOptions): Property<IpMulticast<P>>[] {
  const isWhole = ({ streams }: State<P>): boolean => streams.every(({ delivered, known }) => delivered === known);
  return [
    {
      name: "integrity",
      claim: "no node has delivered more messages from a member than the member has sent",
      when: "always",
      holds: (world) =>
        everyPair<P>(world, (a, sender) => (a.streams[sender.me]?.delivered ?? 0) <= receivedOf(sender, sender.me)),
    },
    {
      name: "validity",
      claim: "a sender has delivered every message that it has multicast",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) => {
          const of: State<P> = state(node);
          return (of.streams[of.me]?.delivered ?? 0) === receivedOf(of, of.me);
        }),
    },
    eventually(
      "agreement",
      "eventually, every member of a view delivers every message that any member has received, and lacks no message that it knows of",
      ({ alive, state }, node) => {
        const one: State<P> = state(node);
        return (
          one.phase !== "open" ||
          (isWhole(one) &&
            alive.every((id) => {
              const other: State<P> = state(id);
              return (
                other.phase === "outside" ||
                other.view !== one.view ||
                covers(receivedVector(one), receivedVector(other))
              );
            }))
        );
      },
    ),
    {
      name: "bounded buffers",
      claim:
        "no node keeps more than one window of messages per sender, or more waiting messages than allowed; during a view change, the limits are twice as high",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node: NodeId) => {
          const { phase, streams, waiting }: State<P> = state(node);
          // While the group is changing, a node also keeps the messages that it must obtain, beyond those it has
          // received.
          const most = phase === "open" ? bounds.windowMessages : 2 * reachOf(bounds);
          return waiting.length <= bounds.maxWaiting && streams.every(({ kept }) => kept.length <= most);
        }),
    },
    ...(sessions
      ? [
          eventually<IpMulticast<P>>(
            "stability",
            "no node keeps a message forever, unless the group is about to change: all nodes eventually know that it is stable",
            ({ state }, node) => {
              const { phase, streams }: State<P> = state(node);
              return phase !== "open" || streams.every(({ kept }) => kept.length === 0);
            },
          ),
        ]
      : []),
  ];
}

/** Returns the messages that have been received but not yet delivered, by sender. */
const heldBack = <P>({ streams }: State<P>): Place[] =>
  streams.flatMap(({ kept, freed, delivered }, sender) =>
    kept.slice(delivered - freed).flatMap((each, i) => (each === null ? [] : [{ sender, number: delivered + 1 + i }])),
  );

function declarations<P>(
  options: IpMulticastOptions,
): Pick<Protocol<IpMulticast<P>>, "source" | "assumes" | "properties" | "costs" | "view"> {
  return {
    source: "Coulouris et al. §15.4.2; Floyd et al., IEEE/ACM ToN 1997",
    assumes: [
      "no crashes, or an additional view protocol",
      "datagrams may be lost, duplicated and reordered, but not forever",
    ],
    properties: properties(options),
    costs: [
      { when: "one multicast", messages: (nodes) => nodes - 1 },
      { when: "the acknowledgements of all members, after a pause", messages: (nodes) => (nodes - 1) ** 2 },
    ],
    view(state) {
      const { phase, waiting, view } = state;
      const back = heldBack(state);
      const role =
        phase !== "open"
          ? phase
          : back.length > 0
            ? "holding back"
            : waiting.length > 0
              ? "waiting for room"
              : "up to date";
      return { role, term: view, held: heldIds(back, ({ sender, number }) => `${state.members[sender]}.${number}`) };
    },
  };
}

export type { IpMulticast, IpMulticastOptions } from "./vocabulary.ts";

const MAX_PAYLOAD_BYTES = 65_536;

/**
 * Creates reliable multicast over IP multicast.
 * @param payload the shape of the messages: text, or messages from the layer above
 * @throws UsageError if an option is unknown or out of range
 */
export function ipMulticast<P = string>(
  given?: Partial<IpMulticastOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<P>,
): Protocol<IpMulticast<P>> {
  const options = ipMulticastOptions.settle(given);
  const talks = sessions<P>(options);
  const repairs = repairing<P>(options);
  const changes = viewChanges<P>(talks, repairs);

  /**
   * Stores a received message. Returns whether it is new. To bound the buffer, a message beyond the window is dropped;
   * it is repaired later.
   */
  function take(state: State<P>, sender: number, number: number, content: P, ctx: Ctx<P>): boolean {
    const stream = state.streams[sender] as Stream<P>;
    const room = state.phase === "open" ? options.windowMessages : reachOf(options);
    // A node that blocked later may hold more messages than fit here. Messages in the cut are accepted anyway.
    const most = Math.max(stream.freed + room, state.fill?.cut[sender] ?? 0);
    if (!isMissing(stream, number) || number > most) return false;
    keep(stream, number, content);
    advance(state, sender);
    if (!options.inOrder) tell(state, sender, number, content, ctx);
    return true;
  }

  /**
   * Runs after each message. If S = R + 1, the message has been delivered; S > R + 1, or an acknowledgement above R,
   * has revealed a loss.
   */
  function settle(state: State<P>, ctx: Ctx<P>): void {
    repairs.look(state, ctx);
    changes.sayIfFilled(state, ctx);
    talks.keepTalking(state, ctx);
  }

  function deliver(state: State<P>, sender: number, ctx: Ctx<P>): void {
    const received = receivedOf(state, sender);
    if (!options.inOrder) (state.streams[sender] as Stream<P>).delivered = received;
    else if (state.phase === "open") deliverUpTo(state, sender, received, ctx);
    talks.settle(state, sender, ctx);
  }

  return {
    name: "ip-multicast",
    init(self, peers) {
      const group = [self, ...peers].sort((a, b) => a - b);
      return stateIn(self, 0, options.begin === "inside" ? group : [], []);
    },
    receive: {
      data(state, from, { view, number, stable, acks, payload: content }, ctx) {
        if (isOfAnotherView(state, view, from) || isAbsurdMessage(state, options, { from, number, stable, acks }))
          return;
        const sender = state.members.indexOf(from);
        talks.learn(state, sender, stable, ctx);
        if (take(state, sender, number, content, ctx)) talks.count(state, number === stable + 1, ctx);
        deliver(state, sender, ctx);
        talks.hear(state, sender, acks, ctx);
        settle(state, ctx);
      },
      repair(state, from, { view, sender: of, number, stable, acks, payload: content }, ctx) {
        if (isOfAnotherView(state, view, from) || isAbsurdMessage(state, options, { from: of, number, stable, acks }))
          return;
        const sender = state.members.indexOf(of);
        talks.learn(state, sender, stable, ctx);
        repairs.spare(state.streams[sender] as Stream<P>, number);
        if (take(state, sender, number, content, ctx)) {
          talks.count(state, false, ctx);
          repairs.takeHeart(state, ctx);
        }
        deliver(state, sender, ctx);
        talks.hear(state, state.members.indexOf(from), acks, ctx);
        settle(state, ctx);
      },
      nack(state, from, { view, acks, wanted }, ctx) {
        if (isOfAnotherView(state, view, from) || isAbsurdNack(state, options, { acks, wanted })) return;
        talks.hear(state, state.members.indexOf(from), acks, ctx);
        repairs.heed(state, wanted, ctx);
        settle(state, ctx);
      },
      session(state, from, message, ctx) {
        const { view, acks, stable } = message;
        if (isOfAnotherView(state, view, from) || isAbsurdSession(state, options, message)) return;
        talks.answer(state, message);
        talks.hear(state, state.members.indexOf(from), acks, ctx);
        for (const [sender, upTo] of stable.entries()) talks.learn(state, sender, upTo, ctx);
        settle(state, ctx);
      },
    },
    timeout: {
      nack: repairs.ask,
      again: repairs.askAgain,
      repair: repairs.repair,
      session: talks.talk,
    },
    command: {
      send: (state, { payload: content }, ctx) => talks.send(state, content, ctx),
      flush: changes.flush,
      fill: changes.fill,
      change: changes.change,
      eject: (state, _command, ctx) => changes.eject(state, ctx),
    },
    shapes: { message: messageShapes(payload), command: commandShapes(payload) },
    ...declarations<P>(options),
  };
}
