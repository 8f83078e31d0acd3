/** Registry entries of the multicasts. */
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
  summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
  orders: [fifoOrder, happenedBeforeOrder, totalOrder],
};

const flush = (multicast: AnyMaker) =>
  ({
    summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
    algorithm: monitored(multicast),
    detects: true,
    mustStart: true,
  }) as const;

const overIpMulticast = (order: keyof typeof overDatagrams) =>
  ({
    summary: "over IP multicast: datagrams get lost, and who lacks one asks for it",
    algorithm: overDatagrams[order],
  }) as const;

const stateInViews = (order: keyof typeof withState) =>
  ({
    summary: "over view synchrony, with the state of the group for members that want it",
    algorithm: monitored(withState[order]),
    detects: true,
    mustStart: true,
  }) as const;

/** The form that channels of `join()` run. */
const channel = (order: Order, ...orders: readonly Property<never>[]) =>
  ({
    channel: {
      summary: "as channels of `join()` run it: in views that are entries of a replicated log",
      algorithm: channelSystem(order),
      orders,
      detects: true,
      mustStart: true,
    },
    "channel-bounded": {
      summary: "the same, on a log in which elections end, for the checker",
      algorithm: channelSystem(order, boundedRaft),
      orders: [...orders, virtualSynchrony as Property<never>],
      mustStart: true,
    },
  }) as const;

export const multicasts: Readonly<Record<string, RegistryEntry>> = {
  "basic-multicast": entry(
    multicast,
    "multicast by one message to each; a sender that crashes half-way reaches some only",
    basicMulticast,
    {
      variants: {
        acknowledged: {
          summary: "each message is acknowledged, and sent again to members that have not done so",
          algorithm: settled(basicMulticast, { acknowledges: true }),
        },
        "at-least-once": {
          summary:
            "acknowledged, and nobody knows a copy: an acknowledgement that is lost has a message delivered twice",
          algorithm: settled(basicMulticast, { acknowledges: true, dropsCopies: false }),
        },
      },
    },
  ),
  causal: entry(multicast, "multicast; nothing is delivered before what it may depend on", causal, {
    orders: [happenedBeforeOrder],
    variants: {
      "every-order": everyOrder,
      flush: flush(flushCausal),
      "over-ip-multicast": overIpMulticast("causal"),
      ...channel("causal", happenedBeforeOrder),
      overlapping: {
        summary: "in overlapping groups: happened-before goes across them, and so do the vectors",
        model: groupsModel(causalInGroups, [happenedBeforeOrder]),
      },
      "overlapping-apart": {
        summary: "the same with the vector of each message's group alone: across groups the order breaks",
        model: groupsModel((options) => eachGroup(causal, options), [happenedBeforeOrder]),
      },
    },
  }),
  "causal-total": entry(
    multicast,
    "multicast; everybody delivers in the same order, which is one of happened-before",
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
  fifo: entry(multicast, "multicast; the messages of one sender come in its order", fifo, {
    orders: [fifoOrder],
    variants: {
      "every-order": everyOrder,
      flush: flush(flushFifo),
      lecture: {
        summary: "as a lecture has it: numbers begin so that the first message of each sender is never delivered",
        algorithm: fifoAsLectured,
      },
      overlapping: {
        summary: "in overlapping groups: numbers of their own in each",
        model: groupsModel((options) => eachGroup(fifo, options), [fifoOrder]),
      },
      "over-ip-multicast": overIpMulticast("fifo"),
      ...channel("fifo", fifoOrder),
    },
  }),
  "fifo-total": entry(
    multicast,
    "multicast; everybody delivers in the same order, and each sender's in its own",
    fifoTotal,
    {
      orders: [totalOrder, fifoOrder],
      variants: { "every-order": everyOrder, flush: flush(flushFifoTotal) },
      shown: { labels: { multicast: ["number", "payload"], proposal: ["place"], agreed: ["place", "proposer"] } },
    },
  ),
  "ip-multicast": entry(
    multicast,
    "multicast in one datagram; a node that lacks a message asks for it, and one that has it answers",
    ipMulticast,
    {
      orders: [fifoOrder],
      variants: {
        "at-once": {
          summary:
            "delivers at once despite a gap, as a lecture's second case: once and everywhere, but not in FIFO order",
          algorithm: settled(ipMulticast, { ...evenly, inOrder: false }),
        },
        even: {
          summary: "asks again at even intervals: runs repeat themselves",
          algorithm: settled(ipMulticast, evenly),
        },
        "every-order": everyOrder,
        lecture: {
          summary: "as a lecture has it: numbers begin at 0, and nobody delivers anybody's first message",
          algorithm: ipMulticastAsLectured,
        },
        overlapping: {
          summary: "in overlapping groups: S and R of their own in each",
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
    "multicast; all propose a place for each message, and everybody delivers in the same order",
    isis,
    {
      orders: [totalOrder],
      variants: {
        "every-order": everyOrder,
        flush: flush(flushIsis),
        overlapping: {
          summary: "in overlapping groups: any two nodes deliver in the same order what both deliver",
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
    "multicast through a replicated log: everybody delivers in its order, members that come later, too",
    logMulticastSystem(),
    {
      orders: [totalOrder, happenedBeforeOrder, virtualSynchrony],
      variants: {
        bounded: {
          summary: "on a log in which elections end, for the checker",
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
    "multicast that everybody passes on: all who do not crash deliver it, or nobody does",
    reliableMulticast,
  ),
  "view-synchrony": entry(
    multicast,
    "multicast in a changing group; who goes from view to view together has delivered the same in each",
    monitored(viewSynchrony),
    {
      orders: [fifoOrder],
      detects: true,
      mustStart: true,
      variants: {
        settled: {
          summary: "all are in view 1, and every crash is made known: what the checker explores",
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
