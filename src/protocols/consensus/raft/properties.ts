/**
 * Raft's properties: the safety guarantees (figure 3), and the guarantee that a node eventually leads. They also cover
 * events from before a node crashed.
 */
import type { EventOf, NodeId, Property, World } from "../../../core/protocol.ts";
import { type Command, isSameCommand } from "../family/replicated-log.ts";
import { entryAt, lastIndex, termAt, uncommittedCharsOf } from "./log.ts";
import { isQuorum, isVoter } from "./membership-changes.ts";
import { behindOf, type RaftOptions } from "./options.ts";
import { readIndexOf } from "./reads.ts";
import { type Configuration, type Entry, type Log, leaderOf, type Raft } from "./vocabulary.ts";

type State = Raft["state"];
type Event = EventOf<Raft>;

/** The number of recent terms and commands remembered per node. */
const REMEMBERED = 16;

interface Led {
  readonly term: number;
  readonly leader: NodeId;
}

const electionSafety: Property<Raft> = {
  name: "election safety",
  claim: "at most one leader is elected in a term",
  when: "always",
  history: {
    empty: [] as readonly Led[],
    after(before: readonly Led[], event: Event): readonly Led[] {
      if (event.type !== "led" || event.leader === null) return before;
      const { leader, term } = event;
      return [...before, { term, leader }].slice(-REMEMBERED);
    },
  },
  holds({ nodes, history }) {
    const leaders = new Map<number, NodeId>();
    for (const node of nodes)
      for (const { term, leader } of history<readonly Led[]>(node)) {
        if ((leaders.get(term) ?? leader) !== leader) return false;
        leaders.set(term, leader);
      }
    return true;
  },
};

const leaderAppendOnly: Property<Raft> = {
  name: "leader append-only",
  claim: "a leader never overwrites or deletes entries in its log; it only appends new entries",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { role, log, term } = state(node);
      if (role.is !== "leader") return true;
      const first = Math.max(role.firstIndex, log.offset);
      return lastIndex(log) === role.persisted && termAt(log, first) === term;
    }),
};

const logMatching: Property<Raft> = {
  name: "log matching",
  claim: "if two logs have an entry with the same index and term, they are identical up to that index",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((a) => alive.every((b) => a >= b || areMatching(state(a).log, state(b).log))),
};

function areMatching(a: Log, b: Log): boolean {
  const from = Math.max(a.offset, b.offset);
  let at = Math.min(lastIndex(a), lastIndex(b));
  while (at > from && termAt(a, at) !== termAt(b, at)) at -= 1;
  for (; at > from; at--) if (!isSame(entryAt(a, at), entryAt(b, at))) return false;
  return true;
}

function isSame(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a?.term !== b?.term || a?.type !== b?.type) return false;
  if (a?.type === "configuration" && b?.type === "configuration")
    return isSameConfiguration(a.configuration, b.configuration);
  return a?.type !== "command" || (b?.type === "command" && isSameCommand(a.command, b.command));
}

const isSameConfiguration = (a: Configuration, b: Configuration): boolean =>
  isSameList(a.voters, b.voters) && isSameList(a.learners, b.learners) && isSameList(a.outgoing, b.outgoing);

const isSameList = (a: readonly NodeId[] | null, b: readonly NodeId[] | null): boolean =>
  a === b || (a !== null && b !== null && a.length === b.length && a.every((node, at) => node === b[at]));

const logTerms: Property<Raft> = {
  name: "terms of a log",
  claim:
    "terms never decrease along a log, no term exceeds the current term of its node, and a snapshot has the term of its last entry",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { log, snapshot, term } = state(node);
      let last = log.offsetTerm;
      for (const entry of log.entries) {
        if (entry.term < last) return false;
        last = entry.term;
      }
      return last <= term && alive.every((each) => knowsTermOf(state(each), snapshot));
    }),
};

/**
 * Returns whether a node's log has the snapshot's term at the snapshot's index. Also true if the node has not committed
 * that index or no longer knows the term.
 */
const knowsTermOf = ({ log, commitIndex }: State, { index, term }: State["snapshot"]): boolean =>
  commitIndex < index || (termAt(log, index) ?? term) === term;

const configurations: Property<Raft> = {
  name: "configurations",
  claim:
    "a node uses the last configuration in its log or, without one, in its snapshot; nodes that have committed an index agree on the configuration there",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((a) => {
      const own = state(a);
      if (!isSameConfiguration(own.configuration, configurationIn(own, lastIndex(own.log)))) return false;
      return alive.every((b) => {
        const other = state(b);
        const index = Math.min(own.commitIndex, other.commitIndex);
        if (a >= b || index < own.snapshot.index || index < other.snapshot.index) return true;
        return isSameConfiguration(configurationIn(own, index), configurationIn(other, index));
      });
    }),
};

/** Derives the configuration from the entries up to an index, which must not be below the snapshot's. */
function configurationIn({ log, snapshot }: State, index: number): Configuration {
  for (let at = index; at > Math.max(log.offset, snapshot.index); at--) {
    const entry = entryAt(log, at);
    if (entry?.type === "configuration") return entry.configuration;
  }
  return snapshot.configuration;
}

const uncommitted: Property<Raft> = {
  name: "uncommitted characters",
  claim: "a leader counts exactly the characters of its uncommitted entries",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const own = state(node);
      return own.role.is !== "leader" || own.role.uncommittedChars === uncommittedCharsOf(own);
    }),
};

/** A command that a node reported as decided. It was committed in this term or an earlier one. */
interface Committed {
  readonly index: number;
  readonly term: number;
  readonly command: Command;
}

interface Told {
  readonly term: number;
  readonly committed: readonly Committed[];
  /** Whether the node reported a different command at the same index after a restart. */
  readonly isTorn: boolean;
}

const told = {
  empty: { term: 0, committed: [], isTorn: false } as Told,
  after(before: Told, event: Event): Told {
    if (event.type === "led" && event.leader !== null) return { ...before, term: event.term };
    if (event.type !== "decided") return before;
    const { index, command } = event;
    const known = before.committed.find((each) => each.index === index);
    if (known !== undefined) return isSameCommand(known.command, command) ? before : { ...before, isTorn: true };
    const committed = [...before.committed, { index, term: before.term, command }].sort((a, b) => a.index - b.index);
    return { ...before, committed: committed.slice(-REMEMBERED) };
  },
};

const leaderCompleteness: Property<Raft> = {
  name: "leader completeness",
  claim: "every entry committed in a term is in the logs of the leaders of all later terms",
  when: "always",
  history: told,
  holds: ({ alive, nodes, state, history }) =>
    alive.every((node) => {
      const { role, log, term } = state(node);
      if (role.is !== "leader") return true;
      return nodes.every((other) =>
        history<Told>(other).committed.every(
          (each) => each.term >= term || each.index <= log.offset || isIn(log, each),
        ),
      );
    }),
};

function isIn(log: Log, { index, command }: Committed): boolean {
  const entry = entryAt(log, index);
  return entry?.type === "command" && isSameCommand(entry.command, command);
}

const stateMachineSafety: Property<Raft> = {
  name: "state machine safety",
  claim: "no two nodes apply different commands at the same index",
  when: "always",
  history: told,
  holds({ nodes, history }) {
    const commands = new Map<number, Command>();
    for (const node of nodes) {
      const { committed, isTorn } = history<Told>(node);
      if (isTorn) return false;
      for (const { index, command } of committed) {
        if (!isSameCommand(commands.get(index) ?? command, command)) return false;
        commands.set(index, command);
      }
    }
    return true;
  },
};

/** Returns the highest index that a node reported as decided in terms below `term`. */
const toldIndex = ({ committed }: Told, term = Number.POSITIVE_INFINITY): number =>
  Math.max(0, ...committed.filter((each) => each.term < term).map(({ index }) => index));

/**
 * The property that reads are linearizable (thesis §6.4). A round of messages proves that no other node was elected
 * before it began. A lease proves that no other node is elected before it ends.
 */
const linearizableReads: Property<Raft> = {
  name: "linearizable reads",
  claim:
    "a leader that may answer a read under its lease knows every committed entry, and no read that waits for a round has an index below an entry committed in an earlier term",
  when: "always",
  history: told,
  holds: ({ alive, nodes, state, history }) =>
    alive.every((node) => {
      const { role, term, commitIndex } = state(node);
      if (role.is !== "leader") return true;
      const reads = [...role.asking, ...role.next];
      const inEarlierTerms = Math.max(0, ...nodes.map((other) => toldIndex(history<Told>(other), term)));
      if (reads.some(({ index }) => index < inEarlierTerms)) return false;
      if (role.leaseRound === null) return true;
      const known = Math.max(
        ...alive.map((other) => state(other).commitIndex),
        ...nodes.map((other) => toldIndex(history<Told>(other))),
      );
      return readIndexOf(commitIndex, role) >= known;
    }),
};

const leadership: Property<Raft> = {
  name: "leadership",
  claim: "eventually one node leads and all live voters follow it, if they form a quorum",
  when: "eventually",
  holds(world) {
    const { alive, state } = world;
    const newest = newestOf(world);
    if (newest === null || !isQuorum(newest.configuration, alive)) return true;
    const voters = alive.filter((node) => isVoter(newest.configuration, node));
    const [leader, ...others] = new Set(voters.map((node) => leaderOf(state(node), node)));
    return others.length === 0 && leader !== null && leader !== undefined && alive.includes(leader);
  },
};

/** Returns the state of the live node with the latest configuration. */
function newestOf({ alive, state }: World<State>): State | null {
  let newest: State | null = null;
  for (const node of alive)
    if (newest === null || state(node).configuration.index > newest.configuration.index) newest = state(node);
  return newest;
}

/** The catch-up property, which holds if `catchUpRounds` is set. */
const caughtUp: Property<Raft> = {
  name: "catch-up",
  claim: "when a membership change begins, every new voter has all entries that the leader had when it was elected",
  when: "always",
  holds: ({ alive, state }) =>
    alive.every((node) => {
      const { role, configuration } = state(node);
      const { voters, outgoing, index } = configuration;
      if (role.is !== "leader" || outgoing === null || index <= role.firstIndex) return true;
      const newcomers = voters.filter((voter) => voter !== node && !outgoing.includes(voter));
      return newcomers.every((voter) => (role.followers[voter]?.match ?? 0) >= role.firstIndex);
    }),
};

/** Returns the priority property, which holds if `handOverBeats` is set. */
const priority = ({ priorities }: RaftOptions): Property<Raft> => ({
  name: "priority",
  claim: "eventually no live voter has a smaller `behind` than the leader",
  when: "eventually",
  holds(world) {
    const { alive, state } = world;
    const newest = newestOf(world);
    if (newest === null || !isQuorum(newest.configuration, alive)) return true;
    const leader = alive.find((node) => state(node).role.is === "leader");
    if (leader === undefined) return true; // `leadership` covers that case.
    const behind = (node: NodeId): number => behindOf(priorities, node);
    return newest.configuration.voters.every((node) => !alive.includes(node) || behind(node) >= behind(leader));
  },
});

/** The safety properties, which must hold after every step. */
export const safety = [
  electionSafety,
  leaderAppendOnly,
  logMatching,
  logTerms,
  configurations,
  leaderCompleteness,
  stateMachineSafety,
  linearizableReads,
  uncommitted,
] as const;

/** The safety properties, and the property that a node eventually leads. */
export const properties: readonly Property<Raft>[] = [...safety, leadership];

/** Returns the safety properties that hold with these options. */
export const safetyWith = ({ catchUpRounds }: Pick<RaftOptions, "catchUpRounds">): readonly Property<Raft>[] =>
  catchUpRounds > 0 ? [...safety, caughtUp] : safety;

/** Returns all properties that hold with these options. */
export const propertiesWith = (options: RaftOptions): readonly Property<Raft>[] => [
  ...safetyWith(options),
  leadership,
  ...(options.handOverBeats > 0 ? [priority(options)] : []),
];
