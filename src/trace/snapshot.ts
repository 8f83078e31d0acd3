/**
 * Snapshots of a run: all nodes, and all messages between them, at one moment. A recording can be replayed to produce a
 * snapshot, and a run can continue from one.
 */
import type { MessageOf, NodeId, RecordOf, StateOf, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { MessageId } from "./entry.ts";

/** The state of a run at one moment. */
export interface Snapshot<V extends Vocabulary> {
  /** The time in milliseconds, according to the trace's clock. */
  readonly at: number;
  /** The nodes, in ascending order of id. */
  readonly nodes: readonly NodeSnapshot<V>[];
  /** The messages in flight, in the order they were sent. */
  readonly inFlight: readonly MessageInFlight<V>[];
  /** The separator between the sender and the count in the ids of later messages. Default: `@` and the time. */
  readonly idMark?: string;
}

/** The state of one node. */
export interface NodeSnapshot<V extends Vocabulary> {
  readonly id: NodeId;
  /** The node's state. Null if the node is down. */
  readonly state: StateOf<V> | null;
  /** How long the node will remain busy with its last step, in milliseconds. Absent if it is not busy. */
  readonly busyMs?: number;
  /** The records that the node has persisted, in order. */
  readonly journal: readonly RecordOf<V>[];
  readonly timers: readonly ({ readonly timer: TimerOf<V>; readonly remainingMs: number } & Ordered)[];
}

/**
 * The order of timers and messages that are due at the same time: first those with an `order`, lowest first, then those
 * without one. Among the latter, timers come before messages.
 */
interface Ordered {
  readonly order?: number;
}

/** A message that has been sent but has not arrived. */
export interface MessageInFlight<V extends Vocabulary> extends Ordered {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: MessageOf<V>;
  /** How long it takes until the message arrives, in milliseconds. Default: the link draws a delay. */
  readonly delayMs?: number;
  /** Whether the receiver has crashed since the message was sent. If so, the message is lost on arrival. */
  readonly isDoomed?: true;
}
