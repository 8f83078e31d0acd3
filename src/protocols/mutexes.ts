/** Registry entries of the mutual exclusion algorithms. */
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
  summary: "with a failure detector: goes on after a crash; a wrong suspicion lets two in",
  detects: true,
} as const;

export const mutualExclusions: Readonly<Record<string, RegistryEntry>> = {
  "central-server": entry(
    mutualExclusion,
    "a server hands out the permission, one request after the other",
    centralServer,
    {
      variants: { "causality-probe": probed(centralServer) },
      shown: { topology: "star", position: atServer, withheld: { request: "grant" } },
    },
  ),
  "elected-server": entry(
    mutualExclusion,
    "a central server that is elected; permissions are leases with growing tokens",
    monitoredElectedServer,
    {
      isDetectedInNodes: false,
      variants: {
        monitored: {
          summary: "with the failure detector of a member of join(): its election waits for nobody who is suspected",
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
    "a token ring that makes a lost token anew, in a higher epoch; permissions are leases",
    monitoredMutexSystem(epochTokenRing),
    {
      variants: {
        monitored: {
          summary: "with the failure detector that real processes have: who is suspected is passed over",
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
  maekawa: entry(mutualExclusion, "who wants in asks its voting set for votes; deadlocks", maekawa, {
    variants: {
      lecture: {
        summary: "as a lecture has it: K − 1 votes and none of one's own; two nodes get in",
        algorithm: maekawaAsLectured,
      },
      "causality-probe": probed(maekawa),
    },
    shown: { topology: "quorums", position: inVotingSets, withheld: { request: "vote" } },
  }),
  "maekawa-sanders": entry(
    mutualExclusion,
    "votes can be taken back for an earlier request",
    monitoredMutexSystem(recoveringMaekawaSanders),
    {
      whereDetected: { rejoins: true },
      variants: {
        monitored: withDetector,
        "displaced-untold": {
          summary: "as published in 1985: who is displaced from the head of a queue is not told; four nodes deadlock",
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
    "on a tree, requests go towards the one token, and it comes back the same way",
    raymond,
    {
      variants: {
        "causality-probe": probed(raymond),
        star: {
          summary: "the first node in the middle: 4 messages at worst",
          algorithm: settled(raymond, { tree: "star" }),
        },
        line: {
          summary: "one after the other: 2(N − 1) messages at worst",
          algorithm: settled(raymond, { tree: "line" }),
        },
      },
      shown: { topology: "tree", position: onTree, carriers: ["privilege"] },
    },
  ),
  "ricart-agrawala": entry(
    mutualExclusion,
    "who wants in asks everybody; the lowest stamp goes first",
    monitoredMutexSystem(recoveringRicartAgrawala),
    {
      model: (options) => mutexWithWorkload(ricartAgrawala, options),
      whereDetected: { rejoins: true },
      variants: {
        monitored: withDetector,
        "roucairol-carvalho": {
          summary: "a reply counts until its sender asks itself: 0 … 2(N − 1) messages an entry",
          algorithm: roucairolCarvalho,
        },
        "roucairol-carvalho-forgetful": {
          summary: "the same without asking again whoever gets its permission back; two nodes get in",
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
    "a node that wants in asks everybody for the one token, which queues those that wait",
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
  "token-ring": entry(mutualExclusion, "a token goes round; whoever has it may be inside", tokenRing, {
    variants: { "causality-probe": probed(tokenRing) },
    mustStart: true,
    onRing: (ring) => ({ mutex: { ring } }),
    shown: { topology: "ring", position: onTokenRing, carriers: ["token"], labels: { token: [] } },
  }),
  // coterie new: mutex
};
