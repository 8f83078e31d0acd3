/** The registry's lines of the multicasts. */
import type { Tagged } from "../core/protocol.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { multicast } from "./family.ts";
import { basicMulticast } from "./multicast/basic-multicast.ts";
import { causal } from "./multicast/causal.ts";
import { causalTotal } from "./multicast/causal-total.ts";
import { delivery, fifoOrder, happenedBeforeOrder, totalOrder } from "./multicast/family/properties.ts";
import { multicastWithWorkload } from "./multicast/family/workload.ts";
import { fifo } from "./multicast/fifo.ts";
import { fifoTotal } from "./multicast/fifo-total.ts";
import { ipMulticast } from "./multicast/ip-multicast/ip-multicast.ts";
import { evenly, ipMulticastWithWorkload } from "./multicast/ip-multicast/workload.ts";
import { isis } from "./multicast/isis.ts";
import { causalInGroups } from "./multicast/overlapping/causal-in-groups.ts";
import { eachGroup } from "./multicast/overlapping/each-group.ts";
import { ipMulticastInGroups } from "./multicast/overlapping/ip-multicast-in-groups.ts";
import { isisInGroups } from "./multicast/overlapping/isis-in-groups.ts";
import { flushCausal, flushCausalTotal, flushFifo, flushFifoTotal, flushIsis } from "./multicast/parts/flush.ts";
import { monitoredMulticast, watchedMulticast } from "./multicast/parts/monitored.ts";
import { groupsWithWorkload, used } from "./multicast/parts/used.ts";
import { reliableMulticast } from "./multicast/reliable-multicast.ts";
import { acknowledgedMulticast, atLeastOnceMulticast } from "./multicast/variants/acknowledged-multicast.ts";
import { fifoAsLectured } from "./multicast/variants/fifo-as-lectured.ts";
import { ipMulticastAsLectured } from "./multicast/variants/ip-multicast-as-lectured.ts";
import { settledViewSynchrony } from "./multicast/variants/settled-view-synchrony.ts";
import { viewSynchrony } from "./multicast/view-synchrony.ts";

const everyOrder = [fifoOrder, happenedBeforeOrder, totalOrder];

export const multicasts: Readonly<Record<string, RegistryEntry>> = {
  "basic-multicast": entry(
    multicast,
    "multicast by one message to each; a sender that crashes half-way reaches some only",
    used(basicMulticast, []),
    {
      node: basicMulticast,
      variants: {
        acknowledged: {
          summary: "each message is acknowledged, and sent again to whoever has not done so",
          model: acknowledgedMulticast,
        },
        "at-least-once": {
          summary:
            "acknowledged, and nobody knows a copy: an acknowledgement that is lost has a message delivered twice",
          model: atLeastOnceMulticast,
        },
      },
    },
  ),
  causal: entry(
    multicast,
    "multicast; nothing is delivered before what it may depend on",
    used(causal, [happenedBeforeOrder]),
    {
      node: causal,
      variants: {
        "every-order": {
          summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
          model: used(causal, everyOrder),
        },
        flush: {
          summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
          model: monitoredMulticast(flushCausal, [happenedBeforeOrder]),
          mustStart: true,
        },
        overlapping: {
          summary: "in overlapping groups: happened-before goes across them, and so do the vectors",
          model: groupsWithWorkload(causalInGroups, [happenedBeforeOrder]),
        },
        "overlapping-apart": {
          summary: "the same with the vector of each message's group alone: across groups the order breaks",
          model: groupsWithWorkload((options) => eachGroup(causal, options), [happenedBeforeOrder]),
        },
      },
    },
  ),
  "causal-total": entry(
    multicast,
    "multicast; everybody delivers in the same order, which is one of happened-before",
    used(causalTotal, [totalOrder, happenedBeforeOrder]),
    {
      node: causalTotal,
      variants: {
        "every-order": {
          summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
          model: used(causalTotal, everyOrder),
        },
        flush: {
          summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
          model: monitoredMulticast(flushCausalTotal, [totalOrder, happenedBeforeOrder]),
          mustStart: true,
        },
      },
    },
  ),
  fifo: entry(multicast, "multicast; the messages of one sender come in its order", used(fifo, [fifoOrder]), {
    node: fifo,
    variants: {
      "every-order": {
        summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
        model: used(fifo, everyOrder),
      },
      flush: {
        summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
        model: monitoredMulticast(flushFifo, [fifoOrder]),
        mustStart: true,
      },
      lecture: {
        summary: "as a lecture has it: numbers begin so that the first message of each sender is never delivered",
        model: used(fifoAsLectured, [fifoOrder]),
      },
      overlapping: {
        summary: "in overlapping groups: numbers of their own in each",
        model: groupsWithWorkload((options) => eachGroup(fifo, options), [fifoOrder]),
      },
    },
  }),
  "fifo-total": entry(
    multicast,
    "multicast; everybody delivers in the same order, and each sender's in its own",
    used(fifoTotal, [totalOrder, fifoOrder]),
    {
      node: fifoTotal,
      variants: {
        "every-order": {
          summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
          model: used(fifoTotal, everyOrder),
        },
        flush: {
          summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
          model: monitoredMulticast(flushFifoTotal, [totalOrder, fifoOrder]),
          mustStart: true,
        },
      },
    },
  ),
  "ip-multicast": entry(
    multicast,
    "multicast in one datagram; who lacks a message asks for it, and whoever has it answers",
    ipMulticastWithWorkload(),
    {
      node: ipMulticast,
      variants: {
        "at-once": {
          summary:
            "delivers at once despite a gap, as a lecture's second case: once and everywhere, but not in FIFO order",
          model: ipMulticastWithWorkload({ ...evenly, inOrder: false }),
        },
        even: {
          summary: "asks again at even intervals: runs repeat themselves",
          model: ipMulticastWithWorkload(evenly),
        },
        "every-order": {
          summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
          model: ipMulticastWithWorkload({}, everyOrder),
        },
        lecture: {
          summary: "as a lecture has it: numbers begin at 0, and nobody delivers anybody's first message",
          model: (options) => multicastWithWorkload(ipMulticastAsLectured(), [fifoOrder, ...delivery], options),
        },
        overlapping: {
          summary: "in overlapping groups: S and R of their own in each",
          model: groupsWithWorkload(ipMulticastInGroups, [fifoOrder]),
        },
        silent: {
          summary: "without session messages: the loss of the last message goes unnoticed",
          model: ipMulticastWithWorkload({ sessions: false }),
        },
      },
      check: { variant: "even", maxInFlight: 2 },
    },
  ),
  isis: entry(
    multicast,
    "multicast; all propose a place for each message, and everybody delivers in the same order",
    used(isis, [totalOrder]),
    {
      node: isis,
      variants: {
        "every-order": {
          summary: "asked for FIFO, happened-before and total order alike: which does it keep?",
          model: used(isis, everyOrder),
        },
        flush: {
          summary: "over view synchrony: members join, leave and crash, and nobody waits for who is no more",
          model: monitoredMulticast(flushIsis, [totalOrder]),
          mustStart: true,
        },
        overlapping: {
          summary: "in overlapping groups: any two nodes deliver in the same order what both deliver",
          model: groupsWithWorkload(isisInGroups, [totalOrder]),
        },
      },
    },
  ),
  "reliable-multicast": entry(
    multicast,
    "multicast that everybody passes on: all who do not crash deliver it, or nobody does",
    used(reliableMulticast, []),
    { node: reliableMulticast },
  ),
  "view-synchrony": entry(
    multicast,
    "multicast in a changing group; who goes from view to view together has delivered the same in each",
    monitoredMulticast(viewSynchrony, [fifoOrder]),
    {
      node: watchedMulticast(viewSynchrony),
      mustStart: true,
      variants: {
        settled: {
          summary: "all are in view 1, and whoever crashes is made known: what the checker explores",
          model: settledViewSynchrony,
          mustStart: false,
        },
      },
      check: {
        variant: "settled",
        crashNotification: (node) => ({ type: "multicast", body: { type: "suspect", node } }) as Tagged,
        timers: "quiet",
        crashNotifications: "any",
      },
    },
  ),
  // coterie new: multicast
};
