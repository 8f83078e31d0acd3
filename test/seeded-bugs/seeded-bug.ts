/** The form of a seeded bug. */

export interface SeededBug {
  readonly name: string;
  /** The mistake in one line. */
  readonly summary: string;
  readonly protocol: Subject;
  /** The file's path from the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The search that finds it: of every run, of some runs, or of runs in virtual time. */
  readonly by: "bfs" | "dfs" | "random" | "pct" | "swarm" | "simulator";
  /** The name of a setting in `settings.ts`. */
  readonly setting: string;
  /** The violated property. */
  readonly property: string;
}

/** How the protocol is assembled from the file with the bug. See `subjects.ts`. */
export type Subject =
  | "bully"
  | "causal"
  | "chang-roberts"
  | "cheap-paxos"
  | "elected-server"
  | "elected-server, short stays"
  | "elected-server, server given"
  | "epoch-bully"
  | "epoch-bully, bounded"
  | "epoch-token-ring"
  | "epoch-token-ring, long stays"
  | "fast-paxos"
  | "generalized-paxos"
  | "flood-set"
  | "generals, a lieutenant is Byzantine"
  | "generals, the commander is Byzantine"
  | "heartbeat"
  | "ip-multicast"
  | "isis over views"
  | "lockstep of three"
  | "lockstep of two"
  | "lockstep, a player commits twice"
  | "lockstep, a player reveals another action"
  | "lockstep, a player withholds its action"
  | "maekawa-sanders, rejoining"
  | "multi-paxos"
  | "multi-paxos, alone"
  | "multi-paxos, members change"
  | "multi-paxos, two ballots"
  | "paxos"
  | "pbft"
  | "pbft, the next primary forges a certificate"
  | "pbft, the next primary forges a new view"
  | "raft"
  | "raft, bounded"
  | "raft, drifting clocks"
  | "raft, figure 8"
  | "raft, leases"
  | "raft, over a conflict"
  | "raft, pre-votes"
  | "raft, reads"
  | "raft, succession"
  | "raft, two learners"
  | "ricart-agrawala"
  | "ricart-agrawala, rejoining"
  | "signed generals, a lieutenant is Byzantine"
  | "signed generals, the commander is Byzantine"
  | "super-peer-dht"
  | "super-peer-tokens"
  | "two-phase-commit"
  | "view-synchrony"
  | "view-synchrony, the agreement on views";

/** A bug in a protocol that consists of several files. */
export type Change = Omit<SeededBug, "protocol">;

/** Returns the search that finds a bug, its setting, and the violated property. */
export function foundBy(
  by: SeededBug["by"],
  setting: string,
  property: string,
): Pick<SeededBug, "by" | "setting" | "property"> {
  return { by, setting, property };
}
