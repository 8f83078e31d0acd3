/**
 * Cluster membership changes (§6): joint consensus, and learners, which receive all entries but never count toward a
 * quorum.
 */
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import type { Members } from "../family/replicated-log.ts";
import type { Configuration, Entry, Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];

/**
 * Returns whether the node votes in the configuration. In a joint configuration, the voters of both configurations
 * vote.
 */
export const isVoter = ({ voters, outgoing }: Configuration, node: NodeId): boolean =>
  voters.includes(node) || (outgoing?.includes(node) ?? false);

/** Returns all nodes that a leader replicates to, in ascending order. */
export function membersOf({ voters, learners, outgoing }: Configuration): NodeId[] {
  return [...new Set([...voters, ...learners, ...(outgoing ?? [])])].sort((a, b) => a - b);
}

/**
 * Returns whether these nodes are a quorum: they include a majority of the voters and, in a joint configuration, also a
 * majority of the outgoing voters.
 */
export function isQuorum({ voters, outgoing }: Configuration, nodes: readonly NodeId[]): boolean {
  return isMajority(voters, nodes) && (outgoing === null || isMajority(outgoing, nodes));
}

const isMajority = (voters: readonly NodeId[], nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

/** Returns the highest index that a quorum has reached. */
export function agreedIndex(configuration: Configuration, matchOf: (node: NodeId) => number): number {
  const { voters, outgoing } = configuration;
  const agreed = (nodes: readonly NodeId[]): number =>
    nodes.map(matchOf).sort((a, b) => b - a)[majority(nodes.length) - 1] as number;
  return outgoing === null ? agreed(voters) : Math.min(agreed(voters), agreed(outgoing));
}

/** Returns the latest configuration up to `index`, which must not be below the snapshot's index. */
export function configurationAt({ log, snapshot, configuration }: State, index: number): State["configuration"] {
  if (configuration.index <= index) return configuration;
  for (let at = index; at > log.offset; at--) {
    const entry = log.entries[at - log.offset - 1];
    if (entry?.type === "configuration") return { ...entry.configuration, index: at };
  }
  return { ...snapshot.configuration, index: snapshot.index };
}

/** Returns whether a configuration is valid: it has at least one voter, no duplicate nodes and only known nodes. */
export function isPossible({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

const isSameSet = (a: readonly NodeId[], b: readonly NodeId[]): boolean =>
  a.length === b.length && a.every((node) => b.includes(node));

/**
 * Returns the entry that begins a change. Null if no change may begin now. Only one change is allowed at a time, and
 * none before the leader has committed an entry of its own term. Otherwise, majorities that do not overlap could decide
 * changes by two different leaders (Ongaro, raft-dev, 2015).
 */
export function changeTo(state: State, { firstIndex }: Leader, { voters, learners }: Members): Entry | null {
  const { configuration, commitIndex, term } = state;
  if (commitIndex < firstIndex) return null;
  if (configuration.outgoing !== null || configuration.index > commitIndex) return null;
  const sameVoters = isSameSet(voters, configuration.voters);
  if (sameVoters && isSameSet(learners, configuration.learners)) return null;
  const outgoing = sameVoters ? null : configuration.voters;
  return { type: "configuration", term, configuration: { voters, learners, outgoing } };
}

/** Returns the entry that ends a change once the joint configuration is committed. Null if no change is in progress. */
export function endOfChange({ configuration, commitIndex, term }: State): Entry | null {
  const { voters, learners, outgoing, index } = configuration;
  if (outgoing === null || index > commitIndex) return null;
  return { type: "configuration", term, configuration: { voters, learners, outgoing: null } };
}

/**
 * Returns whether this leader must step down. A leader that is not in the new configuration leads until that
 * configuration is committed.
 */
export const hasRemovedItself = ({ configuration, commitIndex }: State, self: NodeId): boolean =>
  configuration.index <= commitIndex && !isVoter(configuration, self);
