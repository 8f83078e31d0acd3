/**
 * The trace: JSON lines with one entry each, in the order of events at their node. The simulator, live clusters and pictures
 * share it. `at` is in milliseconds: virtual time in the simulator, Unix time in a live cluster.
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

/** Identifies one sending of a message: sender, receiver, the sender's incarnation and a count. Equal at both ends. */
export type MessageId = string;

/** One entry of a trace. */
export type TraceEntry<V extends Vocabulary = AnyVocabulary> = {
  readonly at: number;
  readonly node: NodeId;
} & Action<V>;

type Action<V extends Vocabulary> =
  /**
   * The node's process started or restarted. `idle`: it is up without having run `start`, as if it always had been. `journal`:
   * the records that it found, if its process reports them.
   */
  | { readonly kind: "start"; readonly idle?: true; readonly journal?: readonly unknown[] }
  /**
   * `journal`: the records left in its journal, if some were lost. `withinStep`: the crash happened within the step of the
   * preceding entries, and the rest of that step was not executed.
   */
  | { readonly kind: "crash"; readonly journal?: readonly unknown[]; readonly withinStep?: true }
  | { readonly kind: "send"; readonly id: MessageId; readonly to: NodeId; readonly message: MessageOf<V> }
  | { readonly kind: "receive"; readonly id: MessageId; readonly from: NodeId; readonly message: MessageOf<V> }
  /** The message will never arrive. `node` is the node at which it was dropped. */
  | { readonly kind: "lost"; readonly id: MessageId; readonly to: NodeId; readonly why: LossReason }
  | { readonly kind: "timeout"; readonly timer: TimerOf<V> }
  | { readonly kind: "command"; readonly command: CommandOf<V> }
  /** `until`: the timer until which the event is certain, if any. `request`: set if the event is the reply to that request. */
  | {
      readonly kind: "event";
      readonly event: EventOf<V> | ReplyOf<V>;
      readonly until?: string;
      readonly request?: RequestId;
    }
  /** The driver's choice for a `ctx.choose` in the step of the preceding entries. */
  | { readonly kind: "choice"; readonly label: string; readonly option: unknown }
  /** The node's process is paused, and continues. */
  | { readonly kind: "pause" | "resume" }
  /** Any other action on the node or its links, as text, such as `link to 3 cut`. */
  | { readonly kind: "fault"; readonly what: string }
  /** A listener was too slow or lost its connection, so at least this many entries of the node are missing here. */
  | { readonly kind: "gap"; readonly dropped: number }
  /**
   * The node's view changed in the step of the preceding entries. `state` may be absent if only held messages, log indexes or
   * the position changed, which can happen at every message.
   */
  | { readonly kind: "view"; readonly view: View; readonly state?: unknown };

/**
 * `cut`: the fault injector cut the link. `dropped`: it dropped this message. `overflow`: the queue was full. `crashed`: the
 * receiver crashed or restarted. `down`: the receiver had not started yet.
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
  /** The form that ran: `model` in the simulator and checker, `node` on real processes. */
  readonly form: "model" | "node";
  readonly variant: string | null;
  readonly options: unknown;
  readonly nodes: readonly NodeId[];
  readonly seed: number | null;
  /** Byzantine nodes, with their behavior as plain data. Absent: none. */
  readonly byzantine?: Readonly<Record<NodeId, unknown>>;
  /** The fields of each node's initial state that differ from the usual one. Absent: none. */
  readonly states?: Readonly<Record<NodeId, Readonly<Record<string, unknown>>>>;
  /** The property that the counterexample violates. */
  readonly violation: {
    readonly property: string;
    readonly claim: string;
    /** The index of the first entry of the part that repeats forever. Null if nothing repeats. */
    readonly loopFrom: number | null;
  } | null;
}

/**
 * Signatures in a recording of real processes. A replay has no keys, so signatures made by the node are recorded as choices,
 * and so are those found to be wrong. All other signatures were right.
 */
export const SIGNATURE = "signature";
/** The label of a recorded signature that was wrong. */
export const WRONG_SIGNATURE = "wrong signature";

/** A name that distinguishes verified values from each other. */
export const signatureName = (by: NodeId, signedText: string, signature: string): string =>
  hash([by, signedText, signature]).toString(36);
