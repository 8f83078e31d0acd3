/**
 * Who accepts and learns which slots. Members that are decided in a slot are in effect `window` slots later, and no slot is
 * proposed before all that stand so far below it are decided: so a proposer always knows the acceptors of a slot.
 * Lamport, Malkhi & Zhou, "Reconfiguring a State Machine", SIGACT News 2010, §2 (there the window is α).
 */
import type { NodeId } from "../../../core/protocol.ts";
import { majority } from "../../../core/quorums.ts";
import type { Members } from "../family/replicated-log.ts";
import type { Attempt, Configuration, State } from "./vocabulary.ts";

export function configurationAt({ configurations }: State, slot: number): Configuration {
  return configurations.findLast(({ from }) => from <= slot) ?? (configurations[0] as Configuration);
}

/** Of the first slot that is not decided. */
export const currentConfiguration = (state: State): Configuration => configurationAt(state, state.decided + 1);

/** Decided, and not in effect yet. */
export const pendingConfiguration = ({ configurations, decided }: State): Configuration | null =>
  configurations.findLast(({ from }) => from > decided + 1) ?? null;

/** The quorums of a slot: any two meet. */
export const hasMajority = ({ voters }: Members, nodes: readonly NodeId[]): boolean =>
  voters.filter((voter) => nodes.includes(voter)).length >= majority(voters.length);

export const isSameMembers = (a: Members, b: Members): boolean =>
  JSON.stringify([a.voters, a.learners]) === JSON.stringify([b.voters, b.learners]);

/** Whether these may be the members: some voters, all of them nodes that there are, each once. */
export function isMembership({ voters, learners }: Members, nodes: readonly NodeId[]): boolean {
  const all = [...voters, ...learners];
  return voters.length > 0 && new Set(all).size === all.length && all.every((node) => nodes.includes(node));
}

export const sorted = ({ voters, learners }: Members): Members => ({
  voters: [...voters].sort((a, b) => a - b),
  learners: [...learners].sort((a, b) => a - b),
});

export const isAuxiliary = ({ auxiliaries }: State, node: NodeId): boolean => auxiliaries.includes(node);

/** Those of these nodes that an attempt asks: auxiliaries only when it must. */
export const asked = (state: State, { isEngaged }: Attempt, nodes: readonly NodeId[], self: NodeId): NodeId[] =>
  nodes.filter((node) => node !== self && (isEngaged || !isAuxiliary(state, node)));

/** Voters of the slots that are not decided. */
export function votersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(currentConfiguration(state).voters, pending?.voters ?? []);
}

/** Everybody who is to hear from a leader. */
export function membersAhead(state: State): NodeId[] {
  const pending = pendingConfiguration(state);
  return union(votersAhead(state), currentConfiguration(state).learners, pending?.learners ?? []);
}

const union = (...sets: readonly (readonly NodeId[])[]): NodeId[] => [...new Set(sets.flat())].sort((a, b) => a - b);
