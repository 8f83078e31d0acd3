/**
 * Multicast through a replicated log: a message is an entry of the log of a coordination service, and everybody delivers what is
 * in the log, in its order. Who is in the group stands there, too, so members may come later than all others, and for good.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990; that total order
 * and consensus are one problem: Chandra & Toueg, JACM 1996, §7. Views: Birman & Joseph, SOSP 1987.
 *
 * Assumes   what the service assumes: crash-recovery nodes with a journal; for liveness a majority alive and connected to a common
 *           leader. Of the group nobody else need be alive.
 * Safety    always: all who deliver two messages deliver them in the same order, and nothing before what its sender had delivered;
 *           virtual synchrony: any two that go from one view to the next have delivered the same messages in the one; none twice,
 *           none in two views, and none once its sender has left the group as it was when it said it.
 * Liveness  what a member says that is not ejected everybody delivers who follows the group. Who is not heard of leaves the view with
 *           its session, and nobody waits for it; back again, it has missed nothing, unless a snapshot took it past a part of the log:
 *           then it is ejected, and comes in as a newcomer.
 * Cost      a message is an entry of the service's log: with Raft 3(N − 1) messages, one more from who does not lead; many at once
 *           share one. A change of the group is one entry.
 */
import type { Assembly } from "../../core/assemble.ts";
import type { Protocol } from "../../core/protocol.ts";
import { type Shape, text } from "../../core/shape.ts";
import { type ServiceParts, withService } from "../service/coordination-service/coordination-service.ts";
import type { AnyMaker, System, WireTable } from "../system.ts";
import { MAX_PAYLOAD_BYTES } from "./parts/group.ts";
import { type LogOrder, type LogOrderOptions, logOrder } from "./parts/log-order.ts";
import { type StateTransfer, stateTransfer } from "./parts/state-transfer/state-transfer.ts";
import type { Entry } from "./parts/state-transfer/vocabulary.ts";

/** With the state of the group for members that want it. */
export type LogMulticast<P = string> = StateTransfer<P, LogOrder<Entry<P>>>;

export const logMulticast = <P = string>(
  options?: Partial<LogOrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<LogMulticast<P>> => stateTransfer((entry) => logOrder(options, entry), payload);

/** Between the multicast and the parts of the service that a member has once for all groups. */
export const logWires: WireTable = {
  multicast: { asked: ({ operation }, give) => give("session", { type: "perform", operation }) },
  session: {
    began: ({ session }, give) => give("multicast", { type: "began", session }),
    lost: ({ session }, give) => give("multicast", { type: "over", session }),
  },
  replica: {
    grouped: ({ name, view, members }, give) => give("multicast", { type: "grouped", name, view, members }),
    said({ name, from, to, text: said, revision }, give) {
      if (to === null) give("multicast", { type: "said", name, from, text: said, revision });
    },
    restored: (_event, give) => give("multicast", { type: "restored" }),
  },
};

/** Of the same, that nothing goes on while nobody leads the log: what programs are told, and nothing rests on. */
export const stallWires: WireTable = { log: { led: ({ leader }, give) => give("multicast", { type: "led", leader }) } };

/** @param log may be another form of Raft. */
export const logMulticastSystem = (log?: AnyMaker): System => ({
  ...withService({ multicast: logMulticast }, logWires, log),
  algorithm: "multicast",
});

export type LogMulticastSystem = Assembly<{ multicast: LogMulticast } & ServiceParts>;
