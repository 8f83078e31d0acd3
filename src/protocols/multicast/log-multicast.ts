/**
 * Multicast through a replicated log: a message is an entry in the log of a coordination service, and all nodes deliver
 * the entries in log order. The members of the group are in the log too, so nodes may join at any later time.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990; on the
 * equivalence of total order and consensus: Chandra & Toueg, JACM 1996, §7. Views: Birman & Joseph, SOSP 1987.
 *
 * Assumes   the assumptions of the service: crash-recovery nodes with a journal; for liveness a majority alive and
 *           connected to a common leader. No other member of the group need be alive.
 * Safety    always: all nodes that deliver two messages deliver them in the same order, and none before a message that
 *           its sender had delivered; virtual synchrony: any two nodes that go from one view to the next have delivered
 *           the same messages in the first; no message twice, in two views, or after its sender has left the group that
 *           it was sent to.
 * Liveness  all nodes that follow the group deliver the messages of members that are not ejected. A silent node leaves
 *           the view with its session, and no node waits for it. When it returns it has missed nothing, unless a snapshot
 *           took it past a part of the log: then it is ejected and joins as a newcomer.
 * Cost      a message is an entry in the service's log: with Raft 3(N − 1) messages, one more if the sender is not the
 *           leader; many concurrent messages share one entry. A change of the group is one entry.
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

/** Vocabulary of log multicast, with state transfer for members that request it. */
export type LogMulticast<P = string> = StateTransfer<P, LogOrder<Entry<P>>>;

/** Creates multicast through a replicated log. @throws UsageError if an option is unknown or out of range. */
export const logMulticast = <P = string>(
  options?: Partial<LogOrderOptions>,
  payload: Shape<P> = text(MAX_PAYLOAD_BYTES) as Shape<never>,
): Protocol<LogMulticast<P>> => stateTransfer((entry) => logOrder(options, entry), payload);

/** The wires between the multicast and the parts of the service that a member shares among all groups. */
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

/** Reports whether the log has a leader. Programs use it to detect stalls. No guarantee depends on it. */
export const stallWires: WireTable = { log: { led: ({ leader }, give) => give("multicast", { type: "led", leader }) } };

/** @param log another form of Raft */
export const logMulticastSystem = (log?: AnyMaker): System => ({
  ...withService({ multicast: logMulticast }, logWires, log),
  algorithm: "multicast",
});

export type LogMulticastSystem = Assembly<{ multicast: LogMulticast } & ServiceParts>;
