/**
 * All nodes, and all messages between them, at one moment of a run. A recording can be replayed to a snapshot, and a run can
 * continue from it.
 */
import type { MessageOf, NodeId, RecordOf, StateOf, TimerOf, Vocabulary } from "../core/protocol.ts";
import type { MessageId } from "./entry.ts";

/** The state of a run at one moment. */
export interface Snapshot<V extends Vocabulary> {
  /** In milliseconds, in the time of the trace. */
  readonly at: number;
  /** Ascending by id. */
  readonly nodes: readonly NodeSnapshot<V>[];
  /** In the order of sending. */
  readonly inFlight: readonly MessageInFlight<V>[];
  /** A separator in the ids of later messages, between sender and count. Default: `@` and the time. */
  readonly idMark?: string;
}

/** The state of one node. */
export interface NodeSnapshot<V extends Vocabulary> {
  readonly id: NodeId;
  /** Null if the node is down. */
  readonly state: StateOf<V> | null;
  /** How long the node is still busy with its last step. Absent if it is not. */
  readonly busyMs?: number;
  /** The records that it has persisted, in order. */
  readonly journal: readonly RecordOf<V>[];
  readonly timers: readonly ({ readonly timer: TimerOf<V>; readonly remainingMs: number } & Ordered)[];
}

/**
 * Orders timers and messages that are due at the same time: lower numbers first, then those without one, timers before
 * messages.
 */
interface Ordered {
  readonly order?: number;
}

/** A message that has been sent and has not arrived. */
export interface MessageInFlight<V extends Vocabulary> extends Ordered {
  readonly id: MessageId;
  readonly from: NodeId;
  readonly to: NodeId;
  readonly message: MessageOf<V>;
  /** Milliseconds until it arrives. Default: the link draws a delay. */
  readonly delayMs?: number;
  /** Set if its receiver has crashed since it was sent, so that it will be lost on arrival. */
  readonly isDoomed?: true;
}
