/**
 * The interface of every replicated log. Clients propose commands, and every node receives the decided commands in the
 * same order. A deterministic state machine (`machine.ts`) applies them and a client (`client.ts`) requests them.
 * Neither depends on the log's algorithm.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990.
 */
import { Chunk } from "../../../core/chunk.ts";
import type { NodeId, Vocabulary } from "../../../core/protocol.ts";
import { chunk, list, natural, type Shapes, struct, text } from "../../../core/shape.ts";

/**
 * A client's command. A client numbers its commands from 1 and has one in progress at a time, so the state machine
 * recognizes duplicates by their number.
 */
export interface Command {
  /** The client's node. */
  client: NodeId;
  /** The command's number, counted from 1 for each client. */
  sequence: number;
  /** The state machine operation, such as `add 1`. */
  operation: string;
}

const MAX_OPERATION_BYTES = 65_536;
/** The maximum size of one chunk of a snapshot. */
export const MAX_CHUNK_BYTES = 1_048_576;
/** The maximum number of chunks in a snapshot. It limits a snapshot to 16 GiB. */
export const MAX_CHUNKS = 16_384;
/** The maximum size of a snapshot in algorithms that keep snapshots as text. */
export const MAX_SNAPSHOT_BYTES = 16_777_216;
/** The maximum length of a member list. */
export const MAX_MEMBERS = 1_000;

/** The members of a log. Each list is in ascending order. */
export interface Members {
  /** The nodes that vote. */
  voters: NodeId[];
  /** The nodes that receive the log but do not vote. */
  learners: NodeId[];
}

/**
 * The reason why a membership change was refused. `no progress`: a new voter accepted nothing. `too slow`: a new voter
 * falls behind as fast as it catches up.
 */
export type Refusal = "no progress" | "too slow";

/** The commands and events of replicated logs. Each log supports a subset. */
export interface ReplicatedLog extends Vocabulary {
  /** The commands that a log can accept. Every log accepts `propose`. */
  command: /**
   * Accepted at any node. The command may be lost or decided more than once. The client proposes it again until it is
   * decided.
   */
    | { type: "propose"; command: Command }
    /** From the state machine: this snapshot replaces all commands up to the index, so the log may drop them. */
    | { type: "compact"; index: number; snapshot: Chunk[] }
    /** For logs that serve reads: requests a `readable` event with this number. The request may be lost. */
    | { type: "read"; read: number }
    /** For logs whose members can change. The caller repeats the request until the change is in effect. */
    | ({ type: "reconfigure" } & Members)
    /** For logs whose leader can transfer the leadership. */
    | { type: "transfer"; to: NodeId }
    /**
     * From the state machine, for logs whose clients may run on nodes that are not replicas: the result of such a
     * client's command.
     */
    | { type: "reply"; client: NodeId; sequence: number; result: string; index: number };
  /** The events that a log can emit. Every log emits `decided`. */
  event: /**
   * The log has this command at this index. Indexes increase at each node and are the same at all nodes. The log uses
   * some indexes for itself. After a restart, all commands above the last snapshot are decided again.
   */
    | { type: "decided"; index: number; command: Command }
    /**
     * This snapshot replaces all commands up to the index. Emitted after a restart, or when this node has fallen
     * behind.
     */
    | { type: "installed"; index: number; snapshot: Chunk[] }
    /** This node has emitted everything that was decided before the read was requested. */
    | { type: "readable"; read: number }
    /** The current leader, as far as this node knows. Null if it does not know of one. */
    | { type: "led"; leader: NodeId | null; term: number }
    /**
     * Only `promised` nodes have answered the candidate, which needs `needed` answers. Nothing is decided until enough
     * nodes answer.
     */
    | { type: "halted"; promised: number; needed: number }
    /** The membership has changed to these members. */
    | ({ type: "reconfigured" } & Members)
    /**
     * For logs that bring new voters up to date first: the change was refused, and the members stay the same. Emitted
     * at the requesting node and at the leader.
     */
    | ({ type: "changeRefused"; reason: Refusal } & Members)
    /**
     * For logs that decide when snapshots are taken: requests a snapshot up to the index. The state machine answers
     * with `compact`.
     */
    | { type: "checkpoint"; index: number }
    /**
     * For logs with Byzantine replicas: `liar` has signed statements that no correct replica would sign, such as two
     * values for one sequence number.
     */
    | { type: "exposed"; liar: NodeId; view: number; sequence: number }
    /** For this node's own client, in logs whose clients may run on nodes that are not replicas. */
    | { type: "answered"; sequence: number; result: string; index: number };
}

export const operationShape = text(MAX_OPERATION_BYTES);
export const resultShape = text(16_777_216);
/** The shape of a snapshot: a list of chunks, so that no node has to keep, send or journal all of it at once. */
export const snapshotShape = list(chunk(MAX_CHUNK_BYTES), MAX_CHUNKS);
export const commandShape = struct<Command>({ client: natural, sequence: natural, operation: operationShape });
export const membersShape = { voters: list(natural, MAX_MEMBERS), learners: list(natural, MAX_MEMBERS) };

/** The shapes of all commands. An algorithm uses those that it supports. */
export const logCommandShapes: Shapes<ReplicatedLog["command"]> = {
  propose: { command: commandShape },
  compact: { index: natural, snapshot: snapshotShape },
  read: { read: natural },
  reconfigure: membersShape,
  transfer: { to: natural },
  reply: { client: natural, sequence: natural, result: resultShape, index: natural },
};

/** Returns whether two values are the same command from the same client. */
export const isSameCommand = (a: Command, b: Command): boolean => a.client === b.client && a.sequence === b.sequence;

/** Returns a snapshot with this text, in chunks of at most `maxBytes` bytes. */
export function snapshotOf(content: string, maxBytes = MAX_CHUNK_BYTES): Chunk[] {
  const { bytes } = Chunk.of(content);
  const chunks: Chunk[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += maxBytes)
    chunks.push(new Chunk(bytes.slice(at, at + maxBytes)));
  return chunks;
}

/** Returns the text of a snapshot. */
export function textOf(snapshot: readonly Chunk[]): string {
  const bytes = new Uint8Array(snapshot.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of snapshot) {
    bytes.set(part.bytes, at);
    at += part.length;
  }
  return new Chunk(bytes).text;
}
