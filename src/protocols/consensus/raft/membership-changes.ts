/** Cluster membership changes (§6): joint consensus, and learners, which are told everything and never counted. */
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import type { Members } from "../family/replicated-log.ts";
import type { Configuration, Entry, Leader, Raft } from "./vocabulary.ts";

type State = Raft["state"];

export const isVoter = ({ voters, outgoing }: Configuration, node: NodeId): boolean =>
  voters.includes(node) || (outgoing?.includes(node) ?? false);

/** All that a leader sends to, ascending. */
export function membersOf({ voters, learners, outgoing }: Configuration): NodeId[] {
  return [...new Set([...voters, ...learners, ...(outgoing ?? [])])].sort((a, b) => a - b);
}

/** Whether these nodes decide: a majority of the voters and, while the configuration is joint, one of the outgoing voters. */
export function isQuorum({ voters, outgoing }: Configuration, nodes: readonly NodeId[]): boolean {
  return isMajority(voters, nodes) && (outgoing === null || isMajority(outgoing, nodes));
}

const isMajority = (voters: readonly NodeId[], nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

/** Up to which index a quorum has the log. */
export function agreedIndex(configuration: Configuration, matchOf: (node: NodeId) => number): number {
  const { voters, outgoing } = configuration;
  const agreed = (nodes: readonly NodeId[]): number =>
    nodes.map(matchOf).sort((a, b) => b - a)[majority(nodes.length) - 1] as number;
  return outgoing === null ? agreed(voters) : Math.min(agreed(voters), agreed(outgoing));
}

/** The last configuration up to an index that is no lower than the snapshot's. */
export function configurationAt({ log, snapshot, configuration }: State, index: number): State["configuration"] {
  if (configuration.index <= index) return configuration;
  for (let at = index; at > log.offset; at--) {
    const entry = log.entries[at - log.offset - 1];
    if (entry?.type === "configuration") return { ...entry.configuration, index: at };
  }
  return { ...snapshot.configuration, index: snapshot.index };
}

/** Whether a configuration can be: at least one voter, nobody twice, nobody from outside. */
export function isPossible({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

const isSameSet = (a: readonly NodeId[], b: readonly NodeId[]): boolean =>
  a.length === b.length && a.every((node) => b.includes(node));

/**
 * The entry that begins a change, or null: one change at a time, and none before the leader has committed an entry of its
 * own term, or two changes of two leaders could be decided by majorities that do not meet (Ongaro, raft-dev, 2015).
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

/** The entry that ends a change, once the joint configuration is committed; null if there is none to end. */
export function endOfChange({ configuration, commitIndex, term }: State): Entry | null {
  const { voters, learners, outgoing, index } = configuration;
  if (outgoing === null || index > commitIndex) return null;
  return { type: "configuration", term, configuration: { voters, learners, outgoing: null } };
}

/** A leader that has removed itself leads until that is committed, and no longer. */
export const hasRemovedItself = ({ configuration, commitIndex }: State, self: NodeId): boolean =>
  configuration.index <= commitIndex && !isVoter(configuration, self);
