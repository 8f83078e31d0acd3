/** The words of Fast Paxos: rounds, votes, what an acceptor, a learner and a coordinator hold, and the messages between them. */
import type { Chunk } from "../../../core/chunk.ts";
import type { NodeId } from "../../../core/protocol.ts";
import { list, natural, nullable, type Shapes, struct } from "../../../core/shape.ts";
import {
  type Command,
  commandShape,
  isSameCommand,
  type ReplicatedLog,
  snapshotShape,
} from "../family/replicated-log.ts";
import { type Ballot, type Balloting, ballotShape, type Round, roundShape } from "../parts/ballots.ts";

/**
 * The rounds that each ballot has, in their order. `picked`: the coordinator asks for one value. `fast`: it has sent "any", and
 * acceptors take what proposers send them. `uncoordinated`: after a collision acceptors pick for themselves. `coordinated`: after a
 * collision the coordinator does.
 */
export const step = { picked: 0, fast: 1, uncoordinated: 2, coordinated: 3 } as const;
export type Step = number;

/** Null: a no-op, for an instance that nobody's command is in. */
export type Value = Command | null;

/** vrnd and vval in the paper. */
export interface Vote {
  round: Round;
  value: Value;
}

export interface CastVote extends Vote {
  instance: number;
}

/** What a learner has heard of one instance: votes of the highest ballot that it knows of, by step and acceptor. */
export interface Heard {
  ballot: Ballot;
  votes: Record<Step, Record<NodeId, Value>>;
}

export interface Promised {
  upTo: number;
  votes: CastVote[];
}

export type Coordinator =
  | { is: "none" }
  | { is: "preparing"; promises: Record<NodeId, Promised> }
  /** `next`: the instance that it picks a command for next. `joined`: who has promised. `watched`: how far it was when it began to wait. */
  | { is: "leading"; next: number; joined: NodeId[]; watched: number | null };

/** A command that this node proposes, and in which instance; null while the window is full. */
export interface Proposal {
  command: Command;
  instance: number | null;
}

export type FastPaxos = {
  /** Every node is a proposer, an acceptor, a learner and, if it has to be, the coordinator. Open: it has "any", from that instance on. */
  state: Balloting & {
    /** The acceptor's last vote in each instance above `upTo`. */
    votes: Record<number, Vote>;
    learnt: Record<number, Heard>;
    /** What has been chosen above `upTo`. */
    chosen: Record<number, Value>;
    /** All up to here is chosen, and emitted: after the snapshot it is the log. */
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
    /** Phase 2a: of one value, or of "any" once for all instances. */
    | ({ type: "accept" } & CastVote)
    | { type: "any"; ballot: Ballot; from: number }
    /** Phase 2b. */
    | ({ type: "accepted" } & CastVote)
    | { type: "nack"; promised: Ballot }
    /** The coordinator's heartbeat: who has missed its "any" has it from here. */
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

/** In these, acceptors may vote for different values. */
export const isFast = ({ step: at }: Pick<Round, "step">): boolean => at === step.fast || at === step.uncoordinated;

export const isSameValue = (a: Value, b: Value): boolean => (a === null || b === null ? a === b : isSameCommand(a, b));

export const MAX_WINDOW = 1_000;
/** Chosen values in one message to a node that has fallen behind. */
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
