/** Registry entries for the super-peer elections in overlays. */
import { entry, type RegistryEntry } from "./entry.ts";
import { election } from "./family.ts";
import { superPeersHeadline } from "./headlines.ts";
import { inSpace, manyLeaders, onIdentifierCircle } from "./overlay/parts/many-leaders.ts";
import { superPeerDht } from "./overlay/super-peer-dht/super-peer-dht.ts";
import { superPeerTokens } from "./overlay/super-peer-tokens/super-peer-tokens.ts";

/** Periodic messages and timers that maintain the identifier circle. */
const lookUps = ["round", "stabilize", "neighbours", "ask", "way"];

export const overlays: Readonly<Record<string, RegistryEntry>> = {
  "super-peer-dht": entry(
    election,
    "on a Chord ring, the node responsible for a reserved identifier serves its region",
    superPeerDht,
    {
      node: manyLeaders(superPeerDht),
      mustStart: true,
      check: { maxTimeouts: 4 },
      shown: {
        topology: "identifier circle",
        position: onIdentifierCircle,
        untilMs: 5_000, // By then all nodes have joined, and each region has its super-peer.
        headline: superPeersHeadline,
        labels: { ask: [], way: ["node"], neighbours: [], leaving: [] },
        periodic: lookUps,
      },
    },
  ),
  "super-peer-tokens": entry(
    election,
    "tokens repel each other in space; a node that holds one long enough becomes a super-peer for the nodes around it",
    superPeerTokens,
    {
      node: manyLeaders(superPeerTokens),
      mustStart: true,
      check: { maxTimeouts: 4 },
      shown: {
        topology: "plane",
        position: inSpace,
        untilMs: 10_000, // A token holder becomes a super-peer after twelve half-second rounds.
        carriers: ["move"],
        headline: superPeersHeadline,
        labels: { gossip: [], answer: [], move: ["holder"], heir: [] },
        periodic: ["round", "gossip", "answer"],
      },
    },
  ),
};
