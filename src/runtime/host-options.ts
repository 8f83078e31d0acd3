import type {
  EventOf,
  MessageOf,
  NodeId,
  Protocol,
  RecordOf,
  ReplyOf,
  Signatures,
  Vocabulary,
} from "../core/protocol.ts";
import type { TraceEntry } from "../trace/entry.ts";
import type { Slot } from "./journal/journal.ts";
import type { Platform } from "./platform/platform.ts";
import type { SendResult } from "./transport/tcp.ts";

export interface HostOptions<V extends Vocabulary> {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly protocol: Protocol<V>;
  readonly self: NodeId;
  readonly peers: readonly NodeId[];
  /**
   * Sends a message. Must serialize it before returning, because the message may be part of the state, which changes
   * later.
   */
  readonly send: (to: NodeId, message: MessageOf<V>) => SendResult;
  /**
   * Broadcasts a message to all peers at once, and returns the result for each peer. If absent, the host sends to each
   * peer separately.
   */
  readonly multicast?: (message: MessageOf<V>) => (to: NodeId) => SendResult;
  readonly trace: TraceSink<V>;
  /** Required if the protocol signs. */
  readonly signatures?: Signatures;
  /**
   * Called when a handler finds that `by` did not sign a value. `from` is the sender of the message being handled, or
   * null if no message is being handled.
   */
  readonly onWrongSignature?: (from: NodeId | null, by: NodeId) => void;
  /**
   * The node's part of the journal. Required if the protocol persists records. The records are replayed when the host
   * starts.
   */
  readonly slot?: Slot<RecordOf<V>> | null;
  /**
   * Called with each event. `until` is how long the event remains certain, as given by its deadline. It is null if the
   * event has no deadline or the deadline has passed.
   */
  readonly onEvent?: (event: EventOf<V>, until: number | null) => void;
  /** Whether `onEvent` needs this event. Other events are not copied. Default: true for all events. */
  readonly isHeard?: (event: EventOf<V>) => boolean;
  /** Called before each step. */
  readonly beforeStep?: () => void;
  /** Called after each step and its events, except for events that are still waiting for the journal. */
  readonly afterStep?: () => void;
  /** Called when the protocol violates its own invariants. The node must stop. */
  readonly onFatal: (error: Error) => void;
}

export interface TraceSink<V extends Vocabulary> {
  /** Whether there is a listener. If not, no entries are created. */
  readonly wanted: boolean;
  /** Records an entry. Must serialize it before returning, because its contents may change later. */
  record(entry: TraceEntry<V>): void;
}

/** A caller waiting for a reply. */
export interface Waiting<V extends Vocabulary> {
  readonly resolve: (reply: ReplyOf<V>) => void;
  readonly reject: (error: Error) => void;
}
