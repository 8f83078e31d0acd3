/** The types and options of Generalized Paxos: histories, votes, eras between checkpoints, and messages. */
import type { Chunk } from "../../../core/chunk.ts";
import type { PerNode } from "../../../core/per-node.ts";
import type { Context, NodeId, Property, World } from "../../../core/protocol.ts";
import { boolean, list, natural, nullable, oneOf, perNode, type Shapes, struct } from "../../../core/shape.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import {
  type Command,
  commandShape,
  isSameCommand,
  MAX_MEMBERS,
  type ReplicatedLog,
  snapshotShape,
} from "../family/replicated-log.ts";
import {
  type Ballot,
  type Balloting,
  ballotShape,
  isEarlier,
  isSameRound,
  type Round,
  roundShape,
} from "../parts/ballots.ts";
import { type QuorumSizes, quorumSizes } from "../parts/quorum-systems.ts";

// Interference: two commands that do not interfere commute, so nodes may apply them in either order. The relation must
// hold for the state machine.

const relations = ["all", "by-key", "none"] as const;
/**
 * The name of an interference relation. With `by-key`, commands on the same key interfere, unless both are reads. It
 * suits the map.
 */
type Relation = (typeof relations)[number];

type Interferes = (a: Command, b: Command) => boolean;

/**
 * Returns whether the command is a checkpoint, which has number 0. Clients number their commands from 1. A checkpoint
 * interferes with every command.
 */
export const isCheckpoint = ({ sequence }: Command): boolean => sequence === 0;

const words = ({ operation }: Command): string[] => operation.split(" ", 2);

function onSameKey(a: Command, b: Command): boolean {
  const [[ofA, keyA], [ofB, keyB]] = [words(a), words(b)];
  return keyA === keyB && !(ofA === "get" && ofB === "get");
}

const declared: Readonly<Record<Relation, Interferes>> = { all: () => true, "by-key": onSameKey, none: () => false };

const interference =
  (relation: Relation): Interferes =>
  (a, b) =>
    isCheckpoint(a) || isCheckpoint(b) || declared[relation](a, b);

// Command histories, the paper's c-structs: sequences of commands. Two histories are equal if they differ only in the
// order of commuting commands. The cone of a command contains the earlier commands that it interferes with, and their
// cones.

/** A sequence of commands. Only the order of interfering commands matters. */
export type History = readonly Command[];

/** Returns whether a history has the command. */
export const contains = (history: History, command: Command): boolean =>
  history.some((each) => isSameCommand(each, command));

/** Returns the smallest prefix (⊑) of the history that contains the command at this index. */
function cone(history: History, place: number, interferes: Interferes): Command[] {
  const found: Command[] = [history[place] as Command];
  for (let before = place - 1; before >= 0; before--) {
    const command = history[before] as Command;
    if (found.some((later) => interferes(command, later))) found.unshift(command);
  }
  return found;
}

/** Returns whether two histories have the same commands, with interfering ones in the same order. */
function isEqual(a: History, b: History, interferes: Interferes): boolean {
  if (a.length !== b.length) return false;
  const places = a.map((command) => b.findIndex((other) => isSameCommand(other, command)));
  return places.every(
    (place, at) =>
      place >= 0 &&
      places.every(
        (other, before) => before >= at || other < place || !interferes(a[before] as Command, a[at] as Command),
      ),
  );
}

/** Returns the history with the missing commands appended in order. */
const extended = (history: History, commands: History): Command[] => [
  ...history,
  ...commands.filter((command) => !contains(history, command)),
];

/** Returns the number of leading commands that are the same in all histories. */
function sharedStart([first = [], ...others]: readonly History[]): number {
  const isShared = (command: Command, place: number): boolean =>
    others.every((history) => history[place] !== undefined && isSameCommand(history[place], command));
  const end = first.findIndex((command, place) => !isShared(command, place));
  return end < 0 ? first.length : end;
}

/**
 * Returns each command that at least `count` histories have with the same cone. In the paper, this is the ⊔, over all
 * sets of `count` histories, of each set's ⊓. The sets must intersect pairwise, so that their common parts are
 * compatible.
 */
export function common(histories: readonly History[], count: number, interferes: Interferes): Command[] {
  if (histories.length < count) return [];
  const start = sharedStart(histories); // The cones of these commands are the same in all histories.
  let found = histories[0]?.slice(0, start) ?? [];
  for (const history of histories)
    for (const [place, command] of history.entries()) {
      if (place < start || contains(found, command)) continue;
      const own = cone(history, place, interferes);
      const equal = histories.filter((other) => {
        const at = other.findIndex((each) => isSameCommand(each, command));
        return at >= 0 && isEqual(own, cone(other, at, interferes), interferes);
      });
      if (equal.length >= count) found = extended(found, own);
    }
  return found;
}

/**
 * The step of the classic round. Only the coordinator appends in it. Rounds with an odd step are fast: acceptors append
 * the commands that proposers send.
 */
export const CLASSIC = 0;
/** The first fast step. */
export const FAST = 1;
/** Returns whether acceptors accept directly from proposers in the round. */
export const isFast = ({ step }: Round): boolean => step % 2 === FAST;

/** An acceptor's vote (bal and val in the paper). */
export interface Vote {
  round: Round;
  history: Command[];
  /** The length of the coordinator's history at the start of the round. The acceptor has appended the rest. */
  begun: number;
  /** Whether the acceptor has stopped appending in this round, so that its vote is also a promise for the next one. */
  closed: boolean;
}

/** The content of a promise. An era of the log is one c-struct, from one checkpoint to the next. */
export interface Promised {
  era: number;
  vote: Vote | null;
}

/** The state after a checkpoint. */
export interface Snapshot {
  index: number;
  snapshot: Chunk[];
  /**
   * The era when the snapshot was taken, the number of commands before that era, and the included commands of that era.
   */
  era: number;
  base: number;
  learnt: Command[];
  /** For each client: the number of its last included command. */
  latest: PerNode<number>;
}

type Coordinator =
  | { is: "none" }
  | { is: "preparing"; promises: Record<NodeId, Promised> }
  | { is: "leading"; joined: NodeId[]; watched: number | null };

/** Vocabulary of Generalized Paxos. */
export type GeneralizedPaxos = {
  /** `open`: the first era whose fast rounds, in the promised ballot, begin with the empty history. */
  state: Balloting & {
    era: number;
    /** The number of commands in earlier eras. */
    base: number;
    /** The acceptor's vote in this era. */
    vote: Vote | null;
    /** For each acceptor: its last known vote in this era. */
    heard: Record<NodeId, Vote>;
    /** The commands learned in this era, in this node's order. */
    learnt: Command[];
    /** Commands that the acceptor appends when it is next allowed to. */
    pending: Command[];
    /** For each client: the number of its last learned command. */
    latest: Record<NodeId, number>;
    snapshot: Snapshot | null;
    /** The eras that are over, starting with the snapshot's era. */
    finished: { commands: Command[] }[];
    coordinator: Coordinator;
  };
  message:
    | { type: "propose"; command: Command }
    | { type: "prepare"; ballot: Ballot }
    | ({ type: "promise"; ballot: Ballot } & Promised)
    /** Phase 2a: accept this history and, from era `open` onward, any command from a proposer. */
    | { type: "accept"; era: number; round: Round; history: Command[]; open: number | null }
    /** Phase 2b. */
    | ({ type: "accepted"; era: number } & Vote)
    | { type: "nack"; promised: Ballot }
    | { type: "heartbeat"; ballot: Ballot; open: number | null; era: number; learnt: number }
    | { type: "catchUp"; era: number }
    | { type: "learnt"; era: number; commands: Command[]; isOver: boolean }
    | ({ type: "snapshot" } & Snapshot);
  timer: "patience" | "heartbeat" | "recover";
  command: Extract<ReplicatedLog["command"], { type: "propose" | "compact" }>;
  event: Extract<ReplicatedLog["event"], { type: "decided" | "installed" | "led" }>;
  record:
    | { type: "promised"; ballot: Ballot }
    | ({ type: "voted"; era: number } & Vote)
    | { type: "finished"; commands: Command[] }
    | ({ type: "snapshot" } & Snapshot);
};

export type State = GeneralizedPaxos["state"];

/**
 * The maximum length of a history. An era has at most twice `checkpointEvery` commands, plus those that a coordinator
 * adds.
 */
const MAX_HISTORY = 4_096;

const historyShape = list(commandShape, MAX_HISTORY);
const vote = { round: roundShape, history: historyShape, begun: natural, closed: boolean };
const latest = perNode(natural, MAX_MEMBERS);
const snapshot = { index: natural, snapshot: snapshotShape, era: natural, base: natural, learnt: historyShape, latest };

export const messageShapes: Shapes<GeneralizedPaxos["message"]> = {
  propose: { command: commandShape },
  prepare: { ballot: ballotShape },
  promise: { ballot: ballotShape, era: natural, vote: nullable(struct<Vote>(vote)) },
  accept: { era: natural, round: roundShape, history: historyShape, open: nullable(natural) },
  accepted: { era: natural, ...vote },
  nack: { promised: ballotShape },
  heartbeat: { ballot: ballotShape, open: nullable(natural), era: natural, learnt: natural },
  catchUp: { era: natural },
  learnt: { era: natural, commands: historyShape, isOver: boolean },
  snapshot,
};

export const recordShapes: Shapes<GeneralizedPaxos["record"]> = {
  promised: { ballot: ballotShape },
  voted: { era: natural, ...vote },
  finished: { commands: historyShape },
  snapshot,
};

const MAX_CHECKPOINT_EVERY = 1_000;

const generalizedPaxosOptions = optionTable("generalized-paxos", {
  interference: option<Relation>(
    oneOf(...relations),
    "all",
    "which commands interfere (do not commute); must be the same at all nodes and correct for the state machine, such as `by-key` for the map",
  ),
  checkpointEvery: count(
    32,
    "the number of commands between checkpoints, which the coordinator proposes; histories restart there",
    {
      max: MAX_CHECKPOINT_EVERY,
    },
  ),
  classicQuorum: whole(0, "the size of a classic quorum, the same at all nodes; 0 means a majority"),
  fastQuorum: whole(0, "the size of a fast quorum, the same at all nodes; 0 means ⌈3N/4⌉"),
  patienceMs: positive(
    1_000,
    "a node becomes coordinator if it receives no message from one for a random time between this and twice this",
  ),
  heartbeatMs: positive(200, "the coordinator's heartbeat interval"),
  recoverMs: positive(
    300,
    "the coordinator recovers a command with a higher ballot if it is still undecided after this time",
  ),
  maxPending: count(
    1_000,
    "the maximum number of commands that an acceptor keeps before it can append them; further commands are dropped",
  ),
});

/** Options for `generalizedPaxos()`. */
export type GeneralizedPaxosOptions = OptionsOf<typeof generalizedPaxosOptions>;

/** The options, and the quorums and the interference relation that they determine. */
export interface Settings extends GeneralizedPaxosOptions {
  quorumsOf(nodes: number): QuorumSizes;
  readonly interferes: Interferes;
}

export type Ctx = Context<GeneralizedPaxos>;

/** Validates the options and adds defaults. @throws UsageError `bad-option` if an option is unknown or out of range */
export function settled(given: Partial<GeneralizedPaxosOptions> | undefined): Settings {
  const options = generalizedPaxosOptions.settle(given);
  const { classicQuorum: classic, fastQuorum: fast } = options;
  return {
    ...options,
    quorumsOf: quorumSizes("majority", { classic, fast }),
    interferes: interference(options.interference),
  };
}

// ProvedSafe in the paper: the commands that may have been chosen in earlier rounds. A coordinator must propose an
// extension of them.

/**
 * Returns the history that a coordinator must extend.
 *
 * @param promises the last votes of the acceptors in Q. Null if an acceptor has not voted
 * @param nodes the number of acceptors
 */
export function provedSafe(
  promises: readonly (Vote | null)[],
  nodes: number,
  quorums: QuorumSizes,
  interferes: Interferes,
): History {
  const voted = promises.filter((vote) => vote !== null);
  const [first] = voted;
  if (first === undefined) return [];
  const k = voted.reduce((highest, { round }) => (isEarlier(highest, round) ? round : highest), first.round);
  const inK = voted.filter(({ round }) => isSameRound(round, k)).map(({ history }) => history);
  // The smallest number of acceptors in Q that a k-quorum R can have. R may have chosen their common part.
  const least = (isFast(k) ? quorums.fast : quorums.classic) + promises.length - nodes;
  // No k-quorum can have voted as a whole, so nothing was chosen in round k. Each history of round k contains
  // everything chosen earlier.
  if (inK.length < least) return inK[0] as History;
  return common(inK, least, interferes);
}

// The ordering property of Generalized Paxos: interfering commands have one order.

/** The number of recent commands kept per node. */
const REMEMBERED = 32;

/**
 * The commands that a node emitted before and after its last restart. After a restart, it may learn them again in a
 * different order.
 */
interface Told {
  readonly before: History;
  readonly now: History;
  /** The index of the last command. Indexes increase until the node restarts. */
  readonly index: number;
}

const nothing: Told = { before: [], now: [], index: 0 };

function after(told: Told, { type, command, index = 0 }: { type: string; command?: Command; index?: number }): Told {
  if (type === "installed") return { before: told.now, now: [], index };
  if (type !== "decided" || command === undefined) return told;
  if (index <= told.index) return { before: told.now, now: [command], index };
  return { ...told, now: [...told.now, command].slice(-REMEMBERED), index };
}

/** Returns whether the interfering commands that two histories share are in the same order. */
function agree(a: History, b: History, interferes: Interferes): boolean {
  const places = a.map((command) => b.findIndex((other) => isSameCommand(other, command)));
  return places.every(
    (place, at) =>
      place < 0 ||
      places.every(
        (other, before) =>
          before >= at || other < place || other < 0 || !interferes(a[before] as Command, a[at] as Command),
      ),
  );
}

function allAgree(orders: readonly History[], interferes: Interferes): boolean {
  return orders.every((a, at) => orders.every((b, other) => other <= at || agree(a, b, interferes)));
}

const ordersOf = ({ nodes, history }: Pick<World<object>, "nodes" | "history">): History[] =>
  nodes.flatMap((node: NodeId) => {
    const { before, now } = history<Told>(node);
    return before.length === 0 ? [now] : [before, now];
  });

export const agreement = (interferes: Interferes): Property<GeneralizedPaxos> => ({
  name: "agreement",
  claim: "all nodes, including crashed ones, learn interfering commands in the same order",
  when: "always",
  history: { empty: nothing, after: (told, event) => after(told as Told, event) },
  holds: (world) => allAgree(ordersOf(world), interferes),
});

/** The property that checkpoints are at the same index at all nodes. */
export const checkpoints: Property<GeneralizedPaxos> = {
  name: "checkpoints",
  claim: "all nodes past a checkpoint have learned the same number of commands before it",
  when: "always",
  holds({ alive, state }) {
    const bases = new Map<number, number>();
    return alive.every((node) => {
      const { era, base } = state(node);
      const known = bases.get(era) ?? base;
      bases.set(era, known);
      return known === base;
    });
  },
};

type States = { machine: { sessions: Record<NodeId, { sequence: number }> }; log: GeneralizedPaxos["state"] };
type Happened = { type: string; body: { type: string; command?: Command; sequence?: number; index?: number } };
type Acknowledged = { readonly sequence: number; readonly index: number };

/** The properties that replace the total-order properties, which make claims about indexes. */
export const clientOrders: readonly Property<never>[] = [
  {
    name: "agreement",
    claim: "all nodes, including crashed ones, learn the commands on each key in the same order",
    when: "always",
    history: {
      empty: nothing,
      after: (told: Told, { type, body }: Happened) => (type === "log" ? after(told, body) : told),
    },
    holds: (world: World<States>) => allAgree(ordersOf(world), interference("by-key")),
  },
  {
    name: "durability",
    claim: "a command acknowledged to a client is applied by every node that is past the next checkpoint",
    when: "always",
    history: {
      empty: { sequence: 0, index: 0 },
      after: (before: Acknowledged, { type, body }: Happened): Acknowledged =>
        type === "client" && body.type === "acknowledged"
          ? { sequence: body.sequence ?? 0, index: body.index ?? 0 }
          : before,
    },
    holds: ({ alive, nodes, state, history }: World<States>) =>
      nodes.every((client) => {
        const { sequence, index } = history<Acknowledged>(client);
        const hasIt = (node: NodeId): boolean => (state(node).machine.sessions[client]?.sequence ?? 0) >= sequence;
        return sequence === 0 || alive.every((node) => state(node).log.base < index || hasIt(node));
      }),
  },
] as unknown as readonly Property<never>[];
