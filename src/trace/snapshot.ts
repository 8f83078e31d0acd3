/** All nodes and all messages between them at one moment of a run: what a recording is replayed to, and goes on from. */
import type { MessageOf, NodeId, RecordOf, StateOf, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { MessageId } from "./entry.ts";

export interface Snapshot<V extends Vocabulary> {
  /** In milliseconds, in the time of the trace. */
  readonly at: number;
  /** Ascending by id. */
  readonly nodes: readonly NodeSnapshot<V>[];
  /** In the order of sending. */
  readonly inFlight: readonly MessageInFlight<V>[];
  /** Between sender and count in the ids of messages that are sent from here on; `@` and the time unless told. */
  readonly idMark?: string;
}

export interface NodeSnapshot<V extends Vocabulary> {
  readonly id: NodeId;
  /** Null while the node is down. */
  readonly state: StateOf<V> | null;
  /** How long it is still busy with its last step; absent where it is not. */
  readonly busyMs?: number;
  /** What it has persisted, in order. */
  readonly journal: readonly RecordOf<V>[];
  readonly timers: readonly ({ readonly timer: TimerOf<V>; readonly remainingMs: number } & Ordered)[];
}

/** Of what is due at the same moment, the lesser comes first; what has no number comes last, timers before messages. */
interface Ordered {
  readonly order?: number;
}

export interface MessageInFlight<V extends Vocabulary> extends Ordered {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: MessageOf<V>;
  /** Until it arrives, in milliseconds; unless told, the link draws a delay. */
  readonly delayMs?: number;
  /** Its receiver has crashed since it was sent: it is lost when it comes. */
  readonly isDoomed?: true;
}
