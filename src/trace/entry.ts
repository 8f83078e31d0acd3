/**
 * Trace entries. A trace is a file of JSON lines, one entry per line, with each node's entries in the order that they
 * happened. The simulator, live clusters and pictures all use this format. `at` is in milliseconds: virtual time in the
 * simulator, Unix time in a live cluster.
 */
import { hash } from "../core/plain.ts";
import type {
  CommandOf,
  EventOf,
  MessageOf,
  NodeId,
  ReplyOf,
  RequestId,
  TimerOf,
  View,
  Vocabulary,
} from "../core/protocol.ts";

/**
 * Identifies one transmission of a message. Consists of the sender, the receiver, the sender's incarnation and a count.
 * A send and its receipt have the same id.
 */
export type MessageId = string;

/** One entry of a trace. */
export type TraceEntry<V extends Vocabulary = AnyVocabulary> = {
  /** The time in milliseconds: virtual time in the simulator, Unix time in a live cluster. */
  readonly at: number;
  /** The node at which the event happened. */
  readonly node: NodeId;
} & Action<V>;

type Action<V extends Vocabulary> =
  /**
   * The node's process started or restarted. `idle`: the node is up without having run `start`, as if it had always
   * been up. `journal`: the records that it found, if its process reports them.
   */
  | { readonly kind: "start"; readonly idle?: true; readonly journal?: readonly unknown[] }
  /**
   * The node crashed. `journal`: the records left in its journal, if some were lost. `withinStep`: the crash happened
   * during the step that the preceding entries belong to, and the rest of that step was not executed.
   */
  | { readonly kind: "crash"; readonly journal?: readonly unknown[]; readonly withinStep?: true }
  | { readonly kind: "send"; readonly id: MessageId; readonly to: NodeId; readonly message: MessageOf<V> }
  | { readonly kind: "receive"; readonly id: MessageId; readonly from: NodeId; readonly message: MessageOf<V> }
  /** The message will never arrive. `node` is the node where it was dropped. */
  | { readonly kind: "lost"; readonly id: MessageId; readonly to: NodeId; readonly why: LossReason }
  | { readonly kind: "timeout"; readonly timer: TimerOf<V> }
  | { readonly kind: "command"; readonly command: CommandOf<V> }
  /**
   * The node emitted an event. `until`: the timer until whose expiry the event is certain, if there is one. `request`:
   * the request that the event is a reply to, if any.
   */
  | {
      readonly kind: "event";
      readonly event: EventOf<V> | ReplyOf<V>;
      readonly until?: string;
      readonly request?: RequestId;
    }
  /** The option that the driver chose for a `ctx.choose` in the step that the preceding entries belong to. */
  | { readonly kind: "choice"; readonly label: string; readonly option: unknown }
  /** The node's process was paused or resumed. */
  | { readonly kind: "pause" | "resume" }
  /** Any other action on the node or its links, as text, such as `link to 3 cut`. */
  | { readonly kind: "fault"; readonly what: string }
  /** A listener was too slow or lost its connection, so at least this many of the node's entries are missing here. */
  | { readonly kind: "gap"; readonly dropped: number }
  /**
   * The node's view changed in the step that the preceding entries belong to. `state` may be absent if only held
   * messages, log indexes or the position changed, which can happen with every message.
   */
  | { readonly kind: "view"; readonly view: View; readonly state?: unknown };

/**
 * Why a message was lost. `cut`: the fault injector had cut the link. `dropped`: the fault injector dropped this
 * message. `overflow`: the queue was full. `crashed`: the receiver crashed or restarted. `down`: the receiver had not
 * started yet.
 */
export type LossReason = "cut" | "dropped" | "overflow" | "crashed" | "down";

interface AnyVocabulary {
  state: object;
  message: { type: string };
  timer: string;
  command: { type: string };
  event: { type: string };
}

/** The first line of a trace. */
export interface TraceHeader {
  readonly kind: "trace";
  readonly version: 1;
  readonly madeBy: "simulator" | "checker" | "cluster";
  /** The name of a registered protocol. */
  readonly protocol: string;
  /** The form that ran. `model`: in the simulator or the checker. `node`: on real processes. */
  readonly form: "model" | "node";
  readonly variant: string | null;
  readonly options: unknown;
  readonly nodes: readonly NodeId[];
  readonly seed: number | null;
  /** The Byzantine nodes and the behavior of each, as plain data. Absent if there are none. */
  readonly byzantine?: Readonly<Record<NodeId, unknown>>;
  /** For each node, the fields of its initial state that differ from the usual one. Absent if there are none. */
  readonly states?: Readonly<Record<NodeId, Readonly<Record<string, unknown>>>>;
  /** The property that the counterexample violates. Null if nothing was violated. */
  readonly violation: {
    readonly property: string;
    readonly claim: string;
    /** The index of the first entry in the part that repeats forever. Null if nothing repeats. */
    readonly loopFrom: number | null;
  } | null;
}

/**
 * The label for signatures in a recording of real processes. A replay has no keys, so the recording stores signatures
 * made by the node, and signatures found to be wrong, as choices. All other signatures were valid.
 */
export const SIGNATURE = "signature";
/** The label of a recorded signature that was wrong. */
export const WRONG_SIGNATURE = "wrong signature";

/** Returns a string that identifies a signature together with the value that it signs. */
export const signatureName = (by: NodeId, signedText: string, signature: string): string =>
  hash([by, signedText, signature]).toString(36);
