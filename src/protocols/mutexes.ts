/** Registry entries for the mutual exclusion algorithms. */
import type { NodeId, Tagged } from "../core/protocol.ts";
import { entry, type RegistryEntry } from "./entry.ts";
import { mutualExclusion } from "./family.ts";
import { centralServer } from "./mutex/central-server.ts";
import { monitoredElectedServer } from "./mutex/elected-server/elected-server.ts";
import { epochTokenRing } from "./mutex/epoch-token-ring/epoch-token-ring.ts";
import { probed } from "./mutex/family/causality-probe.ts";
import {
  atElectedServer,
  atServer,
  byPrivilege,
  byReplies,
  inVotingSets,
  inVotingSetsWithTimes,
  onTokenRing,
  onTree,
} from "./mutex/family/positions.ts";
import { monitored as monitoredMutexSystem, mutexWithWorkload } from "./mutex/family/workload.ts";
import { maekawa } from "./mutex/maekawa.ts";
import { maekawaSanders } from "./mutex/maekawa-sanders/maekawa-sanders.ts";
import { recoveringMaekawaSanders } from "./mutex/maekawa-sanders/recovering.ts";
import { raymond } from "./mutex/raymond.ts";
import { recoveringRicartAgrawala } from "./mutex/ricart-agrawala/recovering.ts";
import { ricartAgrawala } from "./mutex/ricart-agrawala/ricart-agrawala.ts";
import { roucairolCarvalho } from "./mutex/ricart-agrawala/roucairol-carvalho.ts";
import { suzukiKasami } from "./mutex/suzuki-kasami.ts";
import { tokenRing } from "./mutex/token-ring.ts";
import { maekawaAsLectured } from "./mutex/variants/maekawa-as-lectured.ts";
import { settled } from "./system.ts";

const toldInPart = (node: NodeId): Tagged => ({ type: "mutex", body: { type: "suspect", node } }) as Tagged;

const withDetector = {
  summary: "with a failure detector: continues after a crash, but a false suspicion lets two nodes in",
  detects: true,
} as const;

export const mutualExclusions: Readonly<Record<string, RegistryEntry>> = {
  "central-server": entry(mutualExclusion, "a server grants requests one at a time", centralServer, {
    variants: { "causality-probe": probed(centralServer) },
    shown: { topology: "star", position: atServer, withheld: { request: "grant" } },
  }),
  "elected-server": entry(
    mutualExclusion,
    "an elected central server; permissions are leases with increasing tokens",
    monitoredElectedServer,
    {
      isDetectedInNodes: false,
      variants: {
        monitored: {
          summary: "with the failure detector that members of join() use: elections do not wait for suspected nodes",
          detects: true,
        },
      },
      mustStart: true,
      check: { maxTimeouts: 2 },
      shown: {
        topology: "star",
        position: atElectedServer,
        withheld: { request: "grant" },
        labels: { coordinator: ["epoch"] },
        periodic: ["coordinator", "confirm", "renew", "confirmed"],
      },
    },
  ),
  "epoch-token-ring": entry(
    mutualExclusion,
    "a token ring that replaces a lost token in a higher epoch; permissions are leases",
    monitoredMutexSystem(epochTokenRing),
    {
      variants: {
        monitored: {
          summary: "with the failure detector that real processes use: suspected nodes are skipped",
          detects: true,
        },
      },
      mustStart: true,
      onRing: (ring) => ({ mutex: { ring } }),
      check: { maxTimeouts: 2 },
      shown: {
        topology: "ring",
        position: onTokenRing,
        carriers: ["token"],
        labels: { token: ["epoch", "hops"], renew: [], confirm: [] },
        periodic: ["confirmed"],
      },
    },
  ),
  maekawa: entry(mutualExclusion, "a node requests votes from its voting set; can deadlock", maekawa, {
    variants: {
      lecture: {
        summary: "as taught in a lecture: a node needs only K − 1 votes, excluding its own, so two nodes can be inside",
        algorithm: maekawaAsLectured,
      },
      "causality-probe": probed(maekawa),
    },
    shown: { topology: "quorums", position: inVotingSets, withheld: { request: "vote" } },
  }),
  "maekawa-sanders": entry(
    mutualExclusion,
    "votes can be revoked for an earlier request, which prevents deadlocks",
    monitoredMutexSystem(recoveringMaekawaSanders),
    {
      whereDetected: { rejoins: true },
      variants: {
        monitored: withDetector,
        "displaced-untold": {
          summary:
            "as published in 1985: a request displaced from the head of a queue is not notified, so four nodes can deadlock",
          algorithm: settled(maekawaSanders, { tellsDisplaced: false }),
        },
        "causality-probe": probed(maekawaSanders),
      },
      check: { crashNotification: toldInPart },
      shown: { topology: "quorums", position: inVotingSetsWithTimes, withheld: { request: "vote" } },
    },
  ),
  raymond: entry(
    mutualExclusion,
    "on a tree, requests travel toward the token, which returns along the same path",
    raymond,
    {
      variants: {
        "causality-probe": probed(raymond),
        star: {
          summary: "a star with the first node at the center: at most 4 messages",
          algorithm: settled(raymond, { tree: "star" }),
        },
        line: {
          summary: "a chain: at most 2(N − 1) messages",
          algorithm: settled(raymond, { tree: "line" }),
        },
      },
      shown: { topology: "tree", position: onTree, carriers: ["privilege"] },
    },
  ),
  "ricart-agrawala": entry(
    mutualExclusion,
    "a node requests permission from all others; the lowest timestamp goes first",
    monitoredMutexSystem(recoveringRicartAgrawala),
    {
      model: (options) => mutexWithWorkload(ricartAgrawala, options),
      whereDetected: { rejoins: true },
      variants: {
        monitored: withDetector,
        "roucairol-carvalho": {
          summary: "a permission stays valid until its sender requests entry itself: 0 to 2(N − 1) messages per entry",
          algorithm: roucairolCarvalho,
        },
        "roucairol-carvalho-forgetful": {
          summary:
            "the same, but a node does not repeat its request after giving up a permission: two nodes can be inside",
          algorithm: settled(roucairolCarvalho, { asksAgain: false }),
        },
        "causality-probe": probed(ricartAgrawala),
      },
      check: { crashNotification: toldInPart },
      shown: { position: byReplies, withheld: { request: "reply" }, labels: { request: ["time"] } },
    },
  ),
  "suzuki-kasami": entry(
    mutualExclusion,
    "a node requests the token from all others; the token carries the queue of waiting nodes",
    suzukiKasami,
    {
      variants: { "causality-probe": probed(suzukiKasami) },
      shown: {
        position: byPrivilege,
        carriers: ["privilege"],
        labels: { request: ["n"], privilege: ["queue"] },
      },
    },
  ),
  "token-ring": entry(mutualExclusion, "a token circulates on a ring; only its holder may enter", tokenRing, {
    variants: { "causality-probe": probed(tokenRing) },
    mustStart: true,
    onRing: (ring) => ({ mutex: { ring } }),
    shown: { topology: "ring", position: onTokenRing, carriers: ["token"], labels: { token: [] } },
  }),
  // coterie new: mutex
};
