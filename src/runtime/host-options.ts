/** Options of a host. */
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
  /** Must serialize the message before it returns, because the message may be a part of the state, which changes later. */
  readonly send: (to: NodeId, message: MessageOf<V>) => SendResult;
  /**
   * Sends a broadcast to all peers at once, and returns the result for each peer. If absent, the host sends to each peer
   * separately.
   */
  readonly multicast?: (message: MessageOf<V>) => (to: NodeId) => SendResult;
  readonly trace: TraceSink<V>;
  /** Required for a protocol that signs. */
  readonly signatures?: Signatures;
  /** Called when a handler finds that `by` did not sign a value in a message from `from`. Null if no message is being handled. */
  readonly onWrongSignature?: (from: NodeId | null, by: NodeId) => void;
  /** The node's part of the journal. Required for a protocol that persists. Its records are replayed when the host starts. */
  readonly slot?: Slot<RecordOf<V>> | null;
  /**
   * `until`: the time until which the event is certain, as given by its deadline. Null if it has no deadline or it has passed.
   */
  readonly onEvent?: (event: EventOf<V>, until: number | null) => void;
  /** Whether `onEvent` needs the event. Other events are not copied. Default: all events. */
  readonly isHeard?: (event: EventOf<V>) => boolean;
  /** Called before each step, to give the node commands with information it needs first. */
  readonly beforeStep?: () => void;
  /** Called after each step and its events, except for events that wait for the journal. */
  readonly afterStep?: () => void;
  /** Called when the protocol violates its own invariants. The node must stop. */
  readonly onFatal: (error: Error) => void;
}

export interface TraceSink<V extends Vocabulary> {
  /** Whether anyone listens. Otherwise no entries are created. */
  readonly wanted: boolean;
  /** Must serialize the entry before it returns, because its contents may change later. */
  record(entry: TraceEntry<V>): void;
}

/** A caller that waits for a reply. */
export interface Waiting<V extends Vocabulary> {
  readonly resolve: (reply: ReplyOf<V>) => void;
  readonly reject: (error: Error) => void;
}
