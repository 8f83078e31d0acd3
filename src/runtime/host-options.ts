/** What a host is given, and what it tells. */
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
  /** Writes the message down before it returns: it may be a piece of the state, which goes on changing. */
  readonly send: (to: NodeId, message: MessageOf<V>) => SendResult;
  /** Takes a broadcast to all peers at once, and says of each what became of it. Without it, it is sent to each by itself. */
  readonly multicast?: (message: MessageOf<V>) => (to: NodeId) => SendResult;
  readonly trace: TraceSink<V>;
  /** Required of a protocol that signs. */
  readonly signatures?: Signatures;
  /** A handler has found that `by` has not signed what `from` sent in its name; null: nobody sent it just now. */
  readonly onWrongSignature?: (from: NodeId | null, by: NodeId) => void;
  /** Where it journals. Required of a protocol that does; what the slot holds is replayed when the host starts. */
  readonly slot?: Slot<RecordOf<V>> | null;
  /** `until`: up to when it is certain, by its deadline as that was set when it happened; null without one, or once it has passed. */
  readonly onEvent?: (event: EventOf<V>, until: number | null) => void;
  /** Whether `onEvent` wants it: what it does not want is not copied. Default: all of it. */
  readonly isHeard?: (event: EventOf<V>) => boolean;
  /** Called before each step: what the node is to know by then is given to it as commands. */
  readonly beforeStep?: () => void;
  /** Called after each step, and after its events unless they wait for the journal. */
  readonly afterStep?: () => void;
  /** The protocol violated its own invariants. Nothing may go on from here. */
  readonly onFatal: (error: Error) => void;
}

export interface TraceSink<V extends Vocabulary> {
  /** Whether anybody listens. While nobody does, no entry is made. */
  readonly wanted: boolean;
  /** Writes the entry down before it returns: what is in it may be changed afterwards. */
  record(entry: TraceEntry<V>): void;
}

/** Callers that wait for a reply. */
export interface Waiting<V extends Vocabulary> {
  readonly resolve: (reply: ReplyOf<V>) => void;
  readonly reject: (error: Error) => void;
}
