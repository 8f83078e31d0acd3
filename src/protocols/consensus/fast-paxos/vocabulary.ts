/**
 * The types and options of Fast Paxos: rounds, votes, messages, and the state of acceptors, learners and coordinators.
 */
import type { Chunk } from "../../../core/chunk.ts";
import type { Context, NodeId, Property } from "../../../core/protocol.ts";
import { list, natural, nullable, oneOf, type Shapes, struct } from "../../../core/shape.ts";
import { count, type OptionsOf, option, optionTable, positive, whole } from "../../options.ts";
import {
  type Command,
  commandShape,
  isSameCommand,
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
import { type QuorumChoice, type QuorumSizes, quorumSizes } from "../parts/quorum-systems.ts";

const MAX_WINDOW = 1_000;

const fastPaxosOptions = optionTable("fast-paxos", {
  quorums: option<QuorumChoice>(
    oneOf("majority", "equal"),
    "majority",
    "how quorums are sized; must be the same at all nodes",
  ),
  classicQuorum: whole(0, "the size of a classic quorum, the same at all nodes; 0 derives it from `quorums`"),
  fastQuorum: whole(0, "the size of a fast quorum, the same at all nodes; 0 derives it from `quorums`"),
  recovery: option(
    oneOf("coordinated", "uncoordinated"),
    "coordinated",
    "how a collision is resolved, the same at all nodes: by the coordinator in two message delays, or by the acceptors in one",
  ),
  patienceMs: positive(
    1_000,
    "a node becomes coordinator if it receives no message from one for a random time between this and twice this",
  ),
  heartbeatMs: positive(200, "the coordinator's heartbeat interval"),
  window: count(100, "the maximum number of undecided instances", { max: MAX_WINDOW }),
  instances: whole(
    0,
    "the maximum number of instances in the log; 1 decides a single value, as in the paper; 0 means no limit",
  ),
  maxProposals: count(
    1_000,
    "the maximum number of undecided commands that a node keeps for its client; further commands are dropped",
  ),
});

/** Options for `fastPaxos()`. */
export type FastPaxosOptions = OptionsOf<typeof fastPaxosOptions>;

/** The options, and the quorum sizes that they determine. */
export interface Settings extends FastPaxosOptions {
  quorumsOf(nodes: number): QuorumSizes;
}

export type Ctx = Context<FastPaxos>;

/** Validates the options and adds defaults. @throws UsageError `bad-option` if an option is unknown or out of range */
export function settled(given: Partial<FastPaxosOptions> | undefined): Settings {
  const options = fastPaxosOptions.settle(given);
  const { quorums, classicQuorum: classic, fastQuorum: fast } = options;
  return { ...options, quorumsOf: quorumSizes(quorums, { classic, fast }) };
}

/**
 * The rounds of each ballot, in order. `picked`: the coordinator proposes one value. `fast`: it has sent "any", and
 * acceptors accept directly from proposers. `uncoordinated`: after a collision, the acceptors pick a value themselves.
 * `coordinated`: after a collision, the coordinator picks a value.
 */
export const step = { picked: 0, fast: 1, uncoordinated: 2, coordinated: 3 } as const;
/** A step of a ballot, as numbered in `step`. */
export type Step = number;

/** The value of an instance. Null is a no-op, for an instance without a command. */
export type Value = Command | null;

/** An acceptor's vote (vrnd and vval in the paper). */
export interface Vote {
  round: Round;
  value: Value;
}

/** A vote, with the instance that it was cast in. */
export interface CastVote extends Vote {
  instance: number;
}

/** The votes that a learner has received for one instance in the highest known ballot, keyed by step and acceptor. */
interface Heard {
  ballot: Ballot;
  votes: Record<Step, Record<NodeId, Value>>;
}

/** The content of a promise: the acceptor's votes in instances after the last one that it has learned. */
export interface Promised {
  upTo: number;
  votes: CastVote[];
}

type Coordinator =
  | { is: "none" }
  | { is: "preparing"; promises: Record<NodeId, Promised> }
  /**
   * `next`: the next instance to pick a command for. `joined`: the acceptors that have promised. `watched`: the last
   * decided instance when the coordinator began to wait for progress.
   */
  | { is: "leading"; next: number; joined: NodeId[]; watched: number | null };

/** A command that this node proposes, with its instance. The instance is null while the window is full. */
export interface Proposal {
  command: Command;
  instance: number | null;
}

/** Vocabulary of Fast Paxos. */
export type FastPaxos = {
  /**
   * Every node is a proposer, an acceptor, a learner and, if necessary, the coordinator. `open`: the first instance for
   * which the node has received "any".
   */
  state: Balloting & {
    /** The acceptor's last vote in each instance above `upTo`. */
    votes: Record<number, Vote>;
    learnt: Record<number, Heard>;
    /** The chosen values above `upTo`. */
    chosen: Record<number, Value>;
    /** All instances up to this one have been chosen and emitted. `log` contains those after the snapshot. */
    upTo: number;
    snapshot: { index: number; snapshot: Chunk[] } | null;
    log: Value[];
    proposals: Proposal[];
    coordinator: Coordinator;
  };
  message:
    | { type: "propose"; instance: number; command: Command }
    /** Phases 1a and 1b. */
    | { type: "prepare"; ballot: Ballot }
    | ({ type: "promise"; ballot: Ballot } & Promised)
    /** Phase 2a, either with one value, or with "any" for all later instances at once. */
    | ({ type: "accept" } & CastVote)
    | { type: "any"; ballot: Ballot; from: number }
    /** Phase 2b. */
    | ({ type: "accepted" } & CastVote)
    | { type: "nack"; promised: Ballot }
    /** The coordinator's heartbeat. It repeats "any" for nodes that have not received it. */
    | { type: "heartbeat"; ballot: Ballot; any: number | null; upTo: number }
    | { type: "catchUp"; from: number }
    | { type: "chosen"; from: number; values: Value[] }
    | { type: "snapshot"; index: number; snapshot: Chunk[] };
  timer: "patience" | "heartbeat" | "recover";
  command: Extract<ReplicatedLog["command"], { type: "propose" | "compact" }>;
  event: Extract<ReplicatedLog["event"], { type: "decided" | "installed" | "led" }>;
  record:
    | { type: "promised"; ballot: Ballot }
    | ({ type: "voted" } & CastVote)
    | { type: "chosen"; instance: number; value: Value }
    | { type: "snapshot"; index: number; snapshot: Chunk[] };
};

export type State = FastPaxos["state"];

/** Returns whether acceptors may vote for different values in the round. */
export const isFast = ({ step: at }: Pick<Round, "step">): boolean => at === step.fast || at === step.uncoordinated;

/** Returns whether two values are the same command, or both are no-ops. */
export const isSameValue = (a: Value, b: Value): boolean => (a === null || b === null ? a === b : isSameCommand(a, b));

/** The maximum number of chosen values in one message to a node that has fallen behind. */
export const BATCH = 100;

const valueShape = nullable(commandShape);
const castVote = { instance: natural, round: roundShape, value: valueShape };

export const messageShapes: Shapes<FastPaxos["message"]> = {
  propose: { instance: natural, command: commandShape },
  prepare: { ballot: ballotShape },
  promise: { ballot: ballotShape, upTo: natural, votes: list(struct<CastVote>(castVote), MAX_WINDOW) },
  accept: castVote,
  any: { ballot: ballotShape, from: natural },
  accepted: castVote,
  nack: { promised: ballotShape },
  heartbeat: { ballot: ballotShape, any: nullable(natural), upTo: natural },
  catchUp: { from: natural },
  chosen: { from: natural, values: list(valueShape, BATCH) },
  snapshot: { index: natural, snapshot: snapshotShape },
};

export const recordShapes: Shapes<FastPaxos["record"]> = {
  promised: { ballot: ballotShape },
  voted: castVote,
  chosen: { instance: natural, value: valueShape },
  snapshot: { index: natural, snapshot: snapshotShape },
};

// Section "Picking a Value in Phase 2a" of the paper: how a coordinator or a recovering acceptor finds a value that may
// have been chosen in an earlier round. Variables are named as in the paper.

/**
 * The result of `pick`. `free`: no value has been or can still be chosen in an earlier round, so any proposed value may
 * be used.
 */
export type Picked = { is: "value"; value: Value } | { is: "free" };

/**
 * Returns the value to propose in a new round.
 *
 * @param promises vr(a) and vv(a) of each acceptor a in Q, a quorum of the new round. Null if a has not voted
 * @param nodes the number of acceptors
 */
export function pick(promises: readonly (Vote | null)[], nodes: number, quorums: QuorumSizes): Picked {
  const voted = promises.filter((vote) => vote !== null);
  const [first] = voted;
  if (first === undefined) return { is: "free" }; // k = 0.
  const k = voted.reduce((highest, { round }) => (isEarlier(highest, round) ? round : highest), first.round);
  const inK = voted.filter(({ round }) => isSameRound(round, k));
  const V = distinct(inK.map(({ value }) => value));
  if (V.length === 1) return { is: "value", value: V[0] as Value };
  // O4(v): some k-quorum R might have chosen v, because all acceptors in R ∩ Q voted for v in k, and acceptors outside
  // Q may also have voted for v.
  const outside = nodes - promises.length;
  const size = isFast(k) ? quorums.fast : quorums.classic;
  const O4 = (v: Value): boolean => inK.filter(({ value }) => isSameValue(value, v)).length + outside >= size;
  const v = V.filter(O4);
  return v.length > 0 ? { is: "value", value: v[0] as Value } : { is: "free" };
}

const distinct = (values: readonly Value[]): Value[] =>
  values.filter((value, at) => values.findIndex((other) => isSameValue(other, value)) === at);

/** Returns the command from the client with the lowest id. All nodes pick this command if any value may be used. */
export function lowest(values: readonly Value[]): Value {
  const [first = null, ...others] = values;
  return others.reduce((least, value) => (precedes(value, least) ? value : least), first);
}

function precedes(a: Value, b: Value): boolean {
  if (a === null || b === null) return b === null && a !== null;
  return a.client < b.client || (a.client === b.client && a.sequence < b.sequence);
}

/** For each of the node's last instances: the command that it emitted, or "two" if it emitted two different ones. */
type Told = Readonly<Record<number, string>>;

const REMEMBERED = 32;

const textOf = (value: Value): string => (value === null ? "no command" : `${value.client}.${value.sequence}`);

/**
 * Yields the values that a running node has learned. Events are not enough, because a node emits none for an instance
 * without a command.
 */
function* learnedBy({ upTo, log, chosen }: State): Iterable<[instance: number, value: string]> {
  const first = Math.max(0, log.length - REMEMBERED);
  for (let at = first; at < log.length; at++) yield [upTo - log.length + 1 + at, textOf(log[at] as Value)];
  for (const [instance, value] of Object.entries(chosen)) yield [Number(instance), textOf(value)];
}

export const agreement: Property<FastPaxos> = {
  name: "agreement",
  claim: "no two nodes, including crashed ones, learn different values in the same instance",
  when: "always",
  history: {
    empty: {},
    after(before, event) {
      if (event.type !== "decided") return before;
      const { index, command } = event;
      const value = textOf(command);
      const known = (before as Told)[index];
      if (known !== undefined) return known === value ? before : { ...(before as Told), [index]: "two" };
      return Object.fromEntries(Object.entries({ ...(before as Told), [index]: value }).slice(-REMEMBERED));
    },
  },
  holds({ nodes, alive, history, state }) {
    const values = new Map<number, string>();
    const differs = ([instance, value]: [number, string]): boolean => {
      const known = values.get(instance) ?? value;
      values.set(instance, known);
      return value === "two" || value !== known;
    };
    for (const node of nodes)
      for (const [instance, value] of Object.entries(history<Told>(node)))
        if (differs([Number(instance), value])) return false;
    for (const node of alive) for (const each of learnedBy(state(node))) if (differs(each)) return false;
    return true;
  },
};
