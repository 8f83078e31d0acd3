/** The declarations for Multi-Paxos: shapes, properties, costs and view. */
import type { NodeId, Property, Protocol, World } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, struct, text, variants } from "../../../core/shape.ts";
import { commandShape, isSameCommand, logCommandShapes, MAX_MEMBERS, type Members } from "../family/replicated-log.ts";
import { MAX_ENTRIES, MAX_FRAGMENT_BYTES } from "./decisions.ts";
import { mayAnswerByLease } from "./leadership.ts";
import {
  type Ballot,
  type Configuration,
  configurationAt,
  currentConfiguration,
  isAuxiliary,
  isBelow,
  isSameMembers,
  type MultiPaxos,
  type Proposal,
  type Settings,
  type SlotProposal,
  type State,
  type Value,
} from "./vocabulary.ts";

/** The maximum number of configurations. At most one per slot of a window is pending, and one is in effect. */
const MAX_CONFIGURATIONS = 10_000;

const ballot = struct<Ballot>({ round: natural, node: natural });
const voters = list(natural, MAX_MEMBERS);
const value = variants<Value>({
  command: { command: commandShape },
  noop: {},
  members: { voters, learners: voters },
});
const members = struct<Members>({ voters, learners: voters });
const configurations = list(struct<Configuration>({ from: natural, voters, learners: voters }), MAX_CONFIGURATIONS);
const slots = list(struct<SlotProposal>({ slot: natural, ballot, value }), MAX_ENTRIES);
const fragment = text(MAX_FRAGMENT_BYTES);

const shapes: Protocol<MultiPaxos>["shapes"] = {
  message: {
    prepare: { ballot, from: natural, released: nullable(ballot) },
    promise: { ballot, decided: natural, accepted: slots, rest: nullable(natural) },
    accept: { slot: natural, ballot, value, decided: natural },
    accepted: { ballot, slot: natural, decided: natural },
    nack: { ballot, promised: ballot, decided: natural, leader: nullable(natural) },
    decided: { ballot, decided: natural },
    heartbeat: { ballot, round: natural, decided: natural },
    confirm: { ballot, round: natural, decided: natural },
    catchUp: { decided: natural, index: natural, offset: natural },
    learn: { decided: natural, entries: slots },
    chunk: { index: natural, offset: natural, text: fragment, isLast: boolean, configurations },
    forward: { command: commandShape },
    forwardMembers: { members },
    forwardRead: { read: natural },
    forwardTransfer: { to: natural },
    takeOver: { ballot },
    readAt: { read: natural, index: natural },
    forget: { ballot, index: natural },
  },
  command: logCommandShapes,
  record: {
    promised: { ballot },
    accepted: { slot: natural, ballot, value, decided: natural },
    snapshot: { index: natural, configurations },
    snapshotText: { text: fragment },
    forgotten: { index: natural },
  },
};

type Declarations = "shapes" | "source" | "assumes" | "properties" | "costs" | "view";

/** Returns the shapes, source, assumptions, properties and costs. */
export const declarations = ({ reads, announces, tail }: Settings): Pick<Protocol<MultiPaxos>, Declarations> => ({
  shapes,
  source: "Lamport, Paxos Made Simple, 2001, §3; Chandra, Griesemer & Redstone, PODC 2007",
  assumes: [
    "crash-recovery nodes with a journal",
    ...(reads === "lease" ? ["for reads: clock drift within the configured margin, no process pauses"] : []),
    "for liveness: a majority alive; eventually reliable links and bounded delay",
  ],
  properties: [
    oneValuePerSlot,
    promisesKept,
    configurationsAgree,
    linearizableReads(reads === "lease"),
    ...(reads === "lease" ? [oneLease] : []),
  ],
  costs: [
    {
      when: announces
        ? "one command issued by the leader, including decision notices"
        : "one command issued by the leader",
      messages: (nodes) => (announces ? 3 : 2) * (nodes - 1),
    },
  ],
  view: (state, self) => ({
    role: roleOf(state, self),
    leader: state.role.is === "leader" ? self : state.leader,
    term: state.promised.round,
    log: { decided: state.decided, last: lastAccepted(state, self, tail) },
  }),
});

/**
 * Returns the last accepted slot, at most `tail` beyond the decided ones. An auxiliary knows few decisions and stores
 * at most `tail` slots.
 */
function lastAccepted(state: State, self: NodeId, tail: number): number {
  const { decided, log } = state;
  if (isAuxiliary(state, self)) return Math.max(decided, ...Object.keys(log).map(Number));
  let last = decided + tail;
  while (last > decided && log[last] === undefined) last -= 1;
  return last;
}

function roleOf(state: State, self: NodeId): string {
  const { role } = state;
  if (role.is === "candidate") return role.isHalted ? "halted" : "candidate";
  if (role.is === "leader") return "leader";
  if (isAuxiliary(state, self)) return "auxiliary";
  return currentConfiguration(state).voters.includes(self) ? "follower" : "learner";
}

const oneValuePerSlot: Property<MultiPaxos> = {
  name: "one value per slot",
  claim: "the last value that a node decided is the same at every node that has decided that slot",
  when: "always",
  holds({ alive, state }) {
    return alive.every((node) => {
      const { decided, log } = state(node);
      const last = log[decided];
      if (last === undefined) return true; // The slot is in the snapshot.
      return alive.every((other) => {
        const known = state(other).decided >= decided ? state(other).log[decided] : undefined;
        return known === undefined || known === last || isSameValue(known.value, last.value);
      });
    });
  },
};

function isSameValue(a: Value, b: Value): boolean {
  if (a.type === "command")
    return b.type === "command" && isSameCommand(a.command, b.command) && a.command.operation === b.command.operation;
  return a.type === "members" ? b.type === "members" && isSameMembers(a, b) : b.type === "noop";
}

const promisesKept: Property<MultiPaxos> = {
  name: "promises are kept",
  claim: "no node has accepted a ballot above the one it has promised, unless it knows that the slot is decided",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { log, decided, promised } = state(node);
      const next = log[decided + 1];
      return next === undefined || next.ballot.round <= promised.round;
    }),
};

const configurationsAgree: Property<MultiPaxos> = {
  name: "configurations",
  claim: "nodes that have decided a slot agree on the members for the slots that it determines, including in snapshots",
  when: "always",
  holds({ alive, state }) {
    // An auxiliary drops slots without learning them.
    const learners = alive.filter((node) => !isAuxiliary(state(node), node));
    return learners.every((a) => learners.every((b) => a >= b || haveSameMembers(state(a), state(b))));
  },
};

function haveSameMembers(a: State, b: State): boolean {
  const [one, two] = [a.snapshot, b.snapshot];
  if (one !== null && one.index === two?.index && !areSame(one.configurations, two.configurations)) return false;
  if (a.decided === b.decided && !areSame(a.configurations, b.configurations)) return false;
  const slot = Math.min(a.decided, b.decided) + 1;
  const knows = ({ configurations: [first] }: State): boolean => first !== undefined && first.from <= slot;
  return !knows(a) || !knows(b) || isSameMembers(configurationAt(a, slot), configurationAt(b, slot));
}

/**
 * Returns whether the last configurations that both nodes know are equal. Nodes drop old configurations at different
 * times.
 */
function areSame(a: readonly Configuration[], b: readonly Configuration[]): boolean {
  const count = Math.min(a.length, b.length);
  return a.slice(a.length - count).every((one, at) => {
    const two = b[b.length - count + at] as Configuration;
    return one.from === two.from && isSameMembers(one, two);
  });
}

/** Returns the property that reads are linearizable. @param byLease whether leaders use their lease to serve reads */
const linearizableReads = (byLease: boolean): Property<MultiPaxos> => ({
  name: "linearizable reads",
  claim: byLease
    ? "a leader that may answer a read under its lease knows every decided slot, and no read that waits for a round has an index below a slot decided under an earlier ballot"
    : "no read that waits for a round has an index below a slot decided under an earlier ballot",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { role, decided } = state(node);
      if (role.is !== "leader") return true;
      if (byLease && mayAnswerByLease(state(node)) && alive.some((other) => state(other).decided > decided))
        return false;
      return role.reads.every(({ index }) => alive.every((other) => lastUnder(state(other), role.ballot) <= index));
    }),
});

/** Returns the last slot that a node knows to be decided in a lower ballot than this one. */
function lastUnder({ log, decided }: State, ballot: Ballot): number {
  let slot = decided;
  while (log[slot] !== undefined && !isBelow((log[slot] as Proposal).ballot, ballot)) slot -= 1;
  return log[slot] === undefined ? 0 : slot;
}

const oneLease: Property<MultiPaxos> = {
  name: "one lease at a time",
  claim:
    "no two nodes may serve reads under a lease at the same time, if clock drift stays within the configured margin and no node is paused",
  when: "always",
  holds: (world) => holdersOf(world).length <= 1,
};

const holdersOf = ({ alive, state }: World<State>): NodeId[] => alive.filter((node) => mayAnswerByLease(state(node)));
