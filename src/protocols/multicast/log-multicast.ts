/**
 * Multicast through a replicated log: a message is an entry in the log of a coordination service, and all nodes deliver
 * the entries in log order. The group's members are recorded in the log too, so nodes may join at any time. Schneider,
 * "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990; on the
 * equivalence of total order and consensus: Chandra & Toueg, JACM 1996, §7. Views: Birman & Joseph, SOSP 1987.
 *
 * Assumes   the same as the service: crash-recovery nodes with a journal; for liveness, a live majority connected to a
 *           common leader. No other member of the group needs to be alive.
 * Safety    always: any two messages are delivered in the same order by all nodes that deliver both, and no message is
 *           delivered before one that its sender had delivered. Virtual synchrony: any two nodes that move from one
 *           view to the next have delivered the same messages in the first view. No message is delivered twice, in two
 *           views, or after its sender has left the group that it was sent to.
 * Liveness  all nodes that follow the group deliver the messages from members that are not ejected. A silent node
 *           leaves the view when its session expires, and no node waits for it. When it returns, it has missed nothing,
 *           unless it catches up from a snapshot that skips part of the log. In that case, it is ejected and joins as a
 *           newcomer.
 * Cost      a message is an entry in the service's log: with Raft, 3(N − 1) messages, plus one if the sender is not the
 *           leader. Many concurrent messages share one entry. A change of the group takes one entry.
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

/** The wires between the multicast and those parts of the service that a member shares among all groups. */
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

/** Reports whether the log has a leader, so that programs can detect stalls. No guarantee depends on it. */
export const stallWires: WireTable = { log: { led: ({ leader }, give) => give("multicast", { type: "led", leader }) } };

/** Creates the system for real processes. @param log another form of Raft to use */
export const logMulticastSystem = (log?: AnyMaker): System => ({
  ...withService({ multicast: logMulticast }, logWires, log),
  algorithm: "multicast",
});

export type LogMulticastSystem = Assembly<{ multicast: LogMulticast } & ServiceParts>;
