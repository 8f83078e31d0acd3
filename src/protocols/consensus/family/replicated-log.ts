/**
 * The interface of every replicated log: commands go in, and the same commands come out at every node in one order. A
 * deterministic state machine (`machine.ts`) applies them and a client (`client.ts`) requests them. Neither depends on
 * the algorithm in between.
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
  /** The node of the client. */
  client: NodeId;
  sequence: number;
  /** In the language of the state machine, for example `add 1`. */
  operation: string;
}

const MAX_OPERATION_BYTES = 65_536;
export const MAX_CHUNK_BYTES = 1_048_576;
/** Limits a snapshot to 16 GiB. */
export const MAX_CHUNKS = 16_384;
/** The limit for algorithms that hold snapshots as text. */
export const MAX_SNAPSHOT_BYTES = 16_777_216;
export const MAX_MEMBERS = 1_000;

/** The nodes that vote, and those that only receive the log. Ascending. */
export interface Members {
  voters: NodeId[];
  learners: NodeId[];
}

/**
 * Why a membership change was refused: a new voter accepts nothing that it is sent, or falls behind as fast as it
 * catches up.
 */
export type Refusal = "no progress" | "too slow";

export interface ReplicatedLog extends Vocabulary {
  command: /**
   * At any node. The command may be lost, or decided more than once: the client proposes it again until it is decided.
   */
    | { type: "propose"; command: Command }
    /** From the state machine: this snapshot replaces all commands up to the index, and the log may drop those. */
    | { type: "compact"; index: number; snapshot: Chunk[] }
    /** For logs that serve reads: requests a `readable` event with this number. It may be lost, too. */
    | { type: "read"; read: number }
    /** For logs whose members can change. The caller repeats the request until the change is in effect. */
    | ({ type: "reconfigure" } & Members)
    /** For logs whose leader can choose another one. */
    | { type: "transfer"; to: NodeId }
    /**
     * From the state machine, for logs whose clients may be on other nodes than replicas: the result of such a client's
     * command.
     */
    | { type: "reply"; client: NodeId; sequence: number; result: string; index: number };
  event: /**
   * The log has this command at this index. Indices ascend at each node and are the same at all nodes; the log uses
   * some for itself. After a restart, all commands above the last snapshot are decided again.
   */
    | { type: "decided"; index: number; command: Command }
    /** This snapshot replaces all commands up to the index: after a restart, or because this node had fallen behind. */
    | { type: "installed"; index: number; snapshot: Chunk[] }
    /** Everything that was decided before the read was requested has been emitted at this node. */
    | { type: "readable"; read: number }
    /** The leader as far as this node knows; null if it knows none. */
    | { type: "led"; leader: NodeId | null; term: number }
    /**
     * Only `promised` nodes have answered the would-be leader, and `needed` must. Nothing is decided until enough are
     * back.
     */
    | { type: "halted"; promised: number; needed: number }
    /** The members from here on. */
    | ({ type: "reconfigured" } & Members)
    /**
     * For logs that bring new voters up to date first. Emitted at the requesting node and at the leader: the members
     * stay as they are.
     */
    | ({ type: "changeRefused"; reason: Refusal } & Members)
    /**
     * For logs that decide when snapshots are taken: take one now, up to the index. The state machine answers with
     * `compact`.
     */
    | { type: "checkpoint"; index: number }
    /**
     * For logs with Byzantine replicas: this replica has signed what no correct one signs, such as two values for one
     * sequence number.
     */
    | { type: "exposed"; liar: NodeId; view: number; sequence: number }
    /** To this node's own client, in logs whose clients may be on other nodes than replicas. */
    | { type: "answered"; sequence: number; result: string; index: number };
}

export const operationShape = text(MAX_OPERATION_BYTES);
export const resultShape = text(16_777_216);
/** A snapshot is a list of chunks, so that no node has to hold, send or journal all of it at once. */
export const snapshotShape = list(chunk(MAX_CHUNK_BYTES), MAX_CHUNKS);
export const commandShape = struct<Command>({ client: natural, sequence: natural, operation: operationShape });
export const membersShape = { voters: list(natural, MAX_MEMBERS), learners: list(natural, MAX_MEMBERS) };

/** The shapes of all commands. An algorithm picks those that it supports. */
export const logCommandShapes: Shapes<ReplicatedLog["command"]> = {
  propose: { command: commandShape },
  compact: { index: natural, snapshot: snapshotShape },
  read: { read: natural },
  reconfigure: membersShape,
  transfer: { to: natural },
  reply: { client: natural, sequence: natural, result: resultShape, index: natural },
};

export const isSameCommand = (a: Command, b: Command): boolean => a.client === b.client && a.sequence === b.sequence;

/** @returns a snapshot with this text, in chunks of at most `maxBytes`. */
export function snapshotOf(content: string, maxBytes = MAX_CHUNK_BYTES): Chunk[] {
  const { bytes } = Chunk.of(content);
  const chunks: Chunk[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += maxBytes)
    chunks.push(new Chunk(bytes.slice(at, at + maxBytes)));
  return chunks;
}

/** @returns the text of a snapshot. */
export function textOf(snapshot: readonly Chunk[]): string {
  const bytes = new Uint8Array(snapshot.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of snapshot) {
    bytes.set(part.bytes, at);
    at += part.length;
  }
  return new Chunk(bytes).text;
}
