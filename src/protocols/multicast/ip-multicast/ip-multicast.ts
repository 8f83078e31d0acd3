/**
 * Reliable multicast over IP multicast: a message goes out once, in one datagram, and acknowledgements ride on whatever is
 * sent anyway. Who finds that it lacks a message asks for it, and anybody who has it may answer.
 * Coulouris et al. §15.4.2; back-off, suppression and session messages as in Floyd, Jacobson, Liu, McCanne & Zhang, "A
 * Reliable Multicast Framework for Light-weight Sessions and Application Level Framing", IEEE/ACM ToN 1997 (SRM).
 *
 * Assumes   no crashes, unless `views` stands beside it; datagrams may be lost, doubled and overtaken, but not for ever.
 * Safety    integrity: every message at most once, and only what was sent; validity: a sender delivers its own; messages of
 *           one sender in the order of sending; nobody keeps more than a window of anybody's messages, or while the group
 *           changes more than twice the window and what may wait for it.
 * Liveness  agreement: what one has delivered, everybody delivers in the end; then nothing is kept any more.
 * Cost      one datagram a multicast where others speak too; one acknowledgement of each of the N − 1 others after a pause;
 *           for each loss one negative acknowledgement and one repair.
 */
import type { Protocol } from "../../../core/protocol.ts";
import { type Shape, text } from "../../../core/shape.ts";
import { type IpMulticastOptions, ipMulticastOptions, reachOf } from "./options.ts";
import { declarations } from "./properties.ts";
import { repairing } from "./repairs.ts";
import { sessions } from "./sessions.ts";
import { advance, deliverUpTo, isMissing, keep, stateIn, tell } from "./streams.ts";
import { isAbsurdMessage, isAbsurdNack, isAbsurdSession, isOfAnotherView } from "./validation.ts";
import { viewChanges } from "./view-changes.ts";
import {
  type Ctx,
  commandShapes,
  type IpMulticast,
  messageShapes,
  receivedOf,
  type State,
  type Stream,
} from "./vocabulary.ts";

export type { IpMulticastOptions } from "./options.ts";
export type { IpMulticast } from "./vocabulary.ts";

const MAX_PAYLOAD_BYTES = 65_536;

/** @param payload the shape of what is multicast: text, or messages of the layer above. */
export function ipMulticast<P = string>(
  given?: Partial<IpMulticastOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<P>,
): Protocol<IpMulticast<P>> {
  const options = ipMulticastOptions.settle(given);
  const talks = sessions<P>(options);
  const repairs = repairing<P>(options);
  const changes = viewChanges<P>(talks, repairs);

  /** True if the message is new. Too far ahead it is dropped, and will be repaired: nobody needs room for more than a window. */
  function take(state: State<P>, sender: number, number: number, content: P, ctx: Ctx<P>): boolean {
    const stream = state.streams[sender] as Stream<P>;
    const room = state.phase === "open" ? options.windowMessages : reachOf(options);
    // A node that was silenced late may hold more than there was room for here: what the cut takes is taken.
    const most = Math.max(stream.freed + room, state.fill?.cut[sender] ?? 0);
    if (!isMissing(stream, number) || number > most) return false;
    keep(stream, number, content);
    advance(state, sender);
    if (!options.inOrder) tell(state, sender, number, content, ctx);
    return true;
  }

  /** After a message: S = R + 1 has been delivered, S > R + 1 or an acknowledgement above R has shown a loss. */
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
