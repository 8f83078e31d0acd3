/**
 * What every replicated log offers: commands in, the same commands out at every node in one order. A deterministic state
 * machine (`machine.ts`) applies them, a client (`client.ts`) asks for them; neither knows which algorithm is between.
 * Schneider, "Implementing Fault-Tolerant Services Using the State Machine Approach", ACM Computing Surveys 1990.
 */
import { Chunk } from "../../../core/chunk.ts";
import type { NodeId, Vocabulary } from "../../../core/protocol.ts";
import { chunk, list, natural, type Shapes, struct, text } from "../../../core/shape.ts";

/**
 * What a client wants done. It numbers its commands 1, 2, 3 … and has one under way at a time, so a machine that is given one
 * twice sees it by its number.
 */
export interface Command {
  /** The node where the client is. */
  client: NodeId;
  sequence: number;
  /** In the words of the state machine, such as `add 1`. */
  operation: string;
}

const MAX_OPERATION_BYTES = 65_536;
export const MAX_CHUNK_BYTES = 1_048_576;
/** A snapshot has at most 16 GiB. */
export const MAX_CHUNKS = 16_384;
/** The limit of algorithms that hold snapshots as text. */
export const MAX_SNAPSHOT_BYTES = 16_777_216;
export const MAX_MEMBERS = 1_000;

/** Who votes, and who is only told. Ascending. */
export interface Members {
  voters: NodeId[];
  learners: NodeId[];
}

/** Why members stay as they are: one that was to vote takes nothing of what it is sent, or falls behind as fast as it is sent it. */
export type Refusal = "no progress" | "too slow";

export interface ReplicatedLog extends Vocabulary {
  command: /** At any node. It may be lost, or decided more than once: who wants it proposes it again until it is decided. */
    | { type: "propose"; command: Command }
    /** From the state machine: this snapshot stands for all up to the index, and the log may forget that. */
    | { type: "compact"; index: number; snapshot: Chunk[] }
    /** Where the log has reads of its own: asks when a read of this number is up to date. It may be lost, too. */
    | { type: "read"; read: number }
    /** Where members may change: these are to be the members. Whoever wants it asks until it is in effect. */
    | ({ type: "reconfigure" } & Members)
    /** Where there is a leader that can choose another. */
    | { type: "transfer"; to: NodeId }
    /** Where clients may be apart from replicas: from the state machine, what came of a command of another node's client. */
    | { type: "reply"; client: NodeId; sequence: number; result: string; index: number };
  event: /**
   * At this place of the order stands this command. Indices grow by node and are the same everywhere; those in between
   * hold what the log needs for itself. After a restart, what stands above the last snapshot is decided anew.
   */
    | { type: "decided"; index: number; command: Command }
    /** This snapshot stands for all up to the index: after a restart, or since this node had fallen behind. */
    | { type: "installed"; index: number; snapshot: Chunk[] }
    /** All that had been decided before the read was asked for has been told to this node by now. */
    | { type: "readable"; read: number }
    /** Who leads in this node's eyes, where somebody does. */
    | { type: "led"; leader: NodeId | null; term: number }
    /** So few have answered who would lead, and `needed` must: nothing is decided until enough are back. */
    | { type: "halted"; promised: number; needed: number }
    /** These are the members from here on. */
    | ({ type: "reconfigured" } & Members)
    /** Where new voters have to have the log first: these are not the members, and were asked for here or at the leader, which this is. */
    | ({ type: "changeRefused"; reason: Refusal } & Members)
    /** Where the log says when snapshots are taken: now, of all up to the index. The state machine answers with `compact`. */
    | { type: "checkpoint"; index: number }
    /** Where replicas may lie: it has signed what no correct node signs, such as two values for one place. */
    | { type: "exposed"; liar: NodeId; view: number; sequence: number }
    /** To this node's own client, where it is apart from the replicas. */
    | { type: "answered"; sequence: number; result: string; index: number };
}

export const operationShape = text(MAX_OPERATION_BYTES);
export const resultShape = text(16_777_216);
/** A snapshot is a list of chunks, so that no node has to hold, send or journal all of it at once. */
export const snapshotShape = list(chunk(MAX_CHUNK_BYTES), MAX_CHUNKS);
export const commandShape = struct<Command>({ client: natural, sequence: natural, operation: operationShape });
export const membersShape = { voters: list(natural, MAX_MEMBERS), learners: list(natural, MAX_MEMBERS) };

/** Those that an algorithm has are its shapes. */
export const logCommandShapes: Shapes<ReplicatedLog["command"]> = {
  propose: { command: commandShape },
  compact: { index: natural, snapshot: snapshotShape },
  read: { read: natural },
  reconfigure: membersShape,
  transfer: { to: natural },
  reply: { client: natural, sequence: natural, result: resultShape, index: natural },
};

export const isSameCommand = (a: Command, b: Command): boolean => a.client === b.client && a.sequence === b.sequence;

/** A snapshot with this text, in chunks of at most `maxBytes`. */
export function snapshotOf(content: string, maxBytes = MAX_CHUNK_BYTES): Chunk[] {
  const { bytes } = Chunk.of(content);
  const chunks: Chunk[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += maxBytes)
    chunks.push(new Chunk(bytes.slice(at, at + maxBytes)));
  return chunks;
}

/** All of a snapshot, as text. */
export function textOf(snapshot: readonly Chunk[]): string {
  const bytes = new Uint8Array(snapshot.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of snapshot) {
    bytes.set(part.bytes, at);
    at += part.length;
  }
  return new Chunk(bytes).text;
}
