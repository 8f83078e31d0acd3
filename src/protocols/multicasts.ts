/** Registry entries for the multicasts. */
import type { Property, Tagged } from "../core/protocol.ts";
import { boundedRaft } from "./consensus/raft/bounded.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { multicast } from "./family.ts";
import { serviceShown } from "./headlines.ts";
import { basicMulticast } from "./multicast/basic-multicast.ts";
import { causal } from "./multicast/causal.ts";
import { causalTotal } from "./multicast/causal-total.ts";
import { channelSystem, type Order } from "./multicast/family/channels.ts";
import { fifoOrder, happenedBeforeOrder, totalOrder, virtualSynchrony } from "./multicast/family/properties.ts";
import { overDatagrams, withState } from "./multicast/family/stacks.ts";
import { groupsModel, monitored } from "./multicast/family/systems.ts";
import { fifo } from "./multicast/fifo.ts";
import { fifoTotal } from "./multicast/fifo-total.ts";
import { ipMulticast } from "./multicast/ip-multicast/ip-multicast.ts";
import { evenly } from "./multicast/ip-multicast/vocabulary.ts";
import { isis } from "./multicast/isis.ts";
import { logMulticastSystem } from "./multicast/log-multicast.ts";
import { causalInGroups, eachGroup, ipMulticastInGroups, isisInGroups } from "./multicast/overlapping/groups.ts";
import { flushCausal, flushCausalTotal, flushFifo, flushFifoTotal, flushIsis } from "./multicast/parts/flush.ts";
import { reliableMulticast } from "./multicast/reliable-multicast.ts";
import { fifoAsLectured } from "./multicast/variants/fifo-as-lectured.ts";
import { ipMulticastAsLectured } from "./multicast/variants/ip-multicast-as-lectured.ts";
import { settledViewSynchrony } from "./multicast/variants/settled-view-synchrony.ts";
import { viewSynchrony } from "./multicast/view-synchrony.ts";
import { type AnyMaker, settled } from "./system.ts";

const everyOrder = {
  summary: "checked for FIFO, happened-before and total order, to show which of them it guarantees",
  orders: [fifoOrder, happenedBeforeOrder, totalOrder],
};

const flush = (multicast: AnyMaker) =>
  ({
    summary: "over view synchrony: members join, leave and crash without blocking the others",
    algorithm: monitored(multicast),
    detects: true,
    mustStart: true,
  }) as const;

const overIpMulticast = (order: keyof typeof overDatagrams) =>
  ({
    summary: "over IP multicast: nodes request lost datagrams",
    algorithm: overDatagrams[order],
  }) as const;

const stateInViews = (order: keyof typeof withState) =>
  ({
    summary: "over view synchrony, with state transfer for members that request it",
    algorithm: monitored(withState[order]),
    detects: true,
    mustStart: true,
  }) as const;

/** Declares the variants of a multicast that match how the channels of `join()` run it. */
const channel = (order: Order, ...orders: readonly Property<never>[]) =>
  ({
    channel: {
      summary: "as used by the channels of `join()`: views are entries in a replicated log",
      algorithm: channelSystem(order),
      orders,
      detects: true,
      mustStart: true,
    },
    "channel-bounded": {
      summary: "the same, on a log whose elections terminate, for the checker",
      algorithm: channelSystem(order, boundedRaft),
      orders: [...orders, virtualSynchrony as Property<never>],
      mustStart: true,
    },
  }) as const;

export const multicasts: Readonly<Record<string, RegistryEntry>> = {
  "basic-multicast": entry(
    multicast,
    "multicast with one message per member; if the sender crashes midway, only some members receive it",
    basicMulticast,
    {
      variants: {
        acknowledged: {
          summary: "each message is acknowledged, and resent to members that have not acknowledged it",
          algorithm: settled(basicMulticast, { acknowledges: true }),
        },
        "at-least-once": {
          summary:
            "with acknowledgements but without duplicate detection: after a lost acknowledgement, a message is delivered twice",
          algorithm: settled(basicMulticast, { acknowledges: true, dropsCopies: false }),
        },
      },
    },
  ),
  causal: entry(
    multicast,
    "multicast in causal order: no message is delivered before the messages it may depend on",
    causal,
    {
      orders: [happenedBeforeOrder],
      variants: {
        "every-order": everyOrder,
        flush: flush(flushCausal),
        "over-ip-multicast": overIpMulticast("causal"),
        ...channel("causal", happenedBeforeOrder),
        overlapping: {
          summary: "in overlapping groups: happened-before spans groups, and so do the vectors",
          model: groupsModel(causalInGroups, [happenedBeforeOrder]),
        },
        "overlapping-apart": {
          summary: "the same, but a message carries only its own group's vector: the order breaks across groups",
          model: groupsModel((options) => eachGroup(causal, options), [happenedBeforeOrder]),
        },
      },
    },
  ),
  "causal-total": entry(
    multicast,
    "multicast in causal and total order: all nodes deliver in the same order, which extends happened-before",
    causalTotal,
    {
      orders: [totalOrder, happenedBeforeOrder],
      variants: {
        "every-order": everyOrder,
        flush: flush(flushCausalTotal),
        "over-ip-multicast": overIpMulticast("causal-total"),
        "with-state": stateInViews("causal-total"),
        ...channel("causal-total", totalOrder, happenedBeforeOrder),
      },
      shown: { labels: { multicast: ["number", "payload"], proposal: ["place"], agreed: ["place", "proposer"] } },
    },
  ),
  fifo: entry(multicast, "multicast in FIFO order: messages from one sender are delivered in the order sent", fifo, {
    orders: [fifoOrder],
    variants: {
      "every-order": everyOrder,
      flush: flush(flushFifo),
      lecture: {
        summary: "as taught in a lecture: with these initial numbers, each sender's first message is never delivered",
        algorithm: fifoAsLectured,
      },
      overlapping: {
        summary: "in overlapping groups: separate sequence numbers in each",
        model: groupsModel((options) => eachGroup(fifo, options), [fifoOrder]),
      },
      "over-ip-multicast": overIpMulticast("fifo"),
      ...channel("fifo", fifoOrder),
    },
  }),
  "fifo-total": entry(
    multicast,
    "multicast in FIFO and total order: all nodes deliver in the same order, which preserves each sender's order",
    fifoTotal,
    {
      orders: [totalOrder, fifoOrder],
      variants: { "every-order": everyOrder, flush: flush(flushFifoTotal) },
      shown: { labels: { multicast: ["number", "payload"], proposal: ["place"], agreed: ["place", "proposer"] } },
    },
  ),
  "ip-multicast": entry(
    multicast,
    "multicast in one datagram; a node requests missing messages, and any node that has them answers",
    ipMulticast,
    {
      orders: [fifoOrder],
      variants: {
        "at-once": {
          summary:
            "delivers at once despite gaps, the second case in a lecture: exactly once at every node, but not in FIFO order",
          algorithm: settled(ipMulticast, { ...evenly, inOrder: false }),
        },
        even: {
          summary: "retries at regular intervals: runs are periodic",
          algorithm: settled(ipMulticast, evenly),
        },
        "every-order": everyOrder,
        lecture: {
          summary: "as taught in a lecture: numbers begin at 0, and each sender's first message is never delivered",
          algorithm: ipMulticastAsLectured,
        },
        overlapping: {
          summary: "in overlapping groups: separate S and R in each",
          model: groupsModel(ipMulticastInGroups, [fifoOrder]),
        },
        silent: {
          summary: "without session messages: the loss of the last message goes unnoticed",
          algorithm: settled(ipMulticast, { sessions: false }),
        },
      },
      check: { variant: "even", maxInFlight: 2 },
      shown: { labels: { data: ["number", "payload"], session: [] }, periodic: ["session"] },
    },
  ),
  isis: entry(
    multicast,
    "multicast in total order: members propose a position for each message and deliver in the agreed order",
    isis,
    {
      orders: [totalOrder],
      variants: {
        "every-order": everyOrder,
        flush: flush(flushIsis),
        overlapping: {
          summary: "in overlapping groups: any two nodes deliver their common messages in the same order",
          model: groupsModel(isisInGroups, [totalOrder]),
        },
        "over-ip-multicast": overIpMulticast("total"),
        "with-state": stateInViews("total"),
        ...channel("total", totalOrder),
      },
      shown: { labels: { multicast: ["number", "payload"], proposal: ["place"], agreed: ["place", "proposer"] } },
    },
  ),
  "log-multicast": entry(
    multicast,
    "multicast through a replicated log: all members, including later ones, deliver in log order",
    logMulticastSystem(),
    {
      orders: [totalOrder, happenedBeforeOrder, virtualSynchrony],
      variants: {
        bounded: {
          summary: "on a log whose elections terminate, for the checker",
          algorithm: logMulticastSystem(boundedRaft),
        },
      },
      mustStart: true,
      check: { variant: "bounded", maxTimeouts: 1 },
      shown: serviceShown,
    },
  ),
  "reliable-multicast": entry(
    multicast,
    "multicast that every node forwards: either all nodes that do not crash deliver a message, or none does",
    reliableMulticast,
  ),
  "view-synchrony": entry(
    multicast,
    "multicast in a changing group; nodes that move together from one view to the next have delivered the same messages",
    monitored(viewSynchrony),
    {
      orders: [fifoOrder],
      detects: true,
      mustStart: true,
      variants: {
        settled: {
          summary: "all nodes start in view 1, and every crash is announced, for the checker",
          model: settledViewSynchrony,
          mustStart: false,
        },
        ...channel("none", fifoOrder),
      },
      check: {
        variant: "settled",
        crashNotification: (node) => ({ type: "multicast", body: { type: "suspect", node } }) as Tagged,
        timers: "quiet",
        crashNotifications: "any",
      },
      shown: {
        labels: { data: ["number", "payload"], session: [], propose: ["round"], accept: ["round"] },
        periodic: ["session", "alive", "beat", "remind"],
      },
    },
  ),
  // coterie new: multicast
};
