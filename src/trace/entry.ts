/**
 * The trace: one object per line of JSON, in the order in which things happened at their node. Simulator, live cluster
 * and pictures share it. `at` is in milliseconds: virtual in the simulator, of the Unix epoch in a live cluster.
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

/** Names one message on its way: sender, receiver, the sender's incarnation and a count. Equal at both ends. */
export type MessageId = string;

export type TraceEntry<V extends Vocabulary = AnyVocabulary> = {
  readonly at: number;
  readonly node: NodeId;
} & Action<V>;

type Action<V extends Vocabulary> =
  /**
   * The node's process began, or began again. `idle`: it is up without having run its `start`, as if it always had been.
   * `journal`: the records that it found, where its process tells them.
   */
  | { readonly kind: "start"; readonly idle?: true; readonly journal?: readonly unknown[] }
  /**
   * `journal`: the records that are left of its journal, where that is not all of them. `withinStep`: it struck within
   * the step that the entries before this one belong to, and the rest of that was never done.
   */
  | { readonly kind: "crash"; readonly journal?: readonly unknown[]; readonly withinStep?: true }
  | { readonly kind: "send"; readonly id: MessageId; readonly to: NodeId; readonly message: MessageOf<V> }
  | { readonly kind: "receive"; readonly id: MessageId; readonly from: NodeId; readonly message: MessageOf<V> }
  /** The message will never arrive. `node` is where it was dropped. */
  | { readonly kind: "lost"; readonly id: MessageId; readonly to: NodeId; readonly why: LossReason }
  | { readonly kind: "timeout"; readonly timer: TimerOf<V> }
  | { readonly kind: "command"; readonly command: CommandOf<V> }
  /** `until`: the timer up to which it is certain, where it says so. `request`: it is the reply to that request. */
  | {
      readonly kind: "event";
      readonly event: EventOf<V> | ReplyOf<V>;
      readonly until?: string;
      readonly request?: RequestId;
    }
  /** What the driver picked for a `ctx.choose` of the step that the entries before this one belong to. */
  | { readonly kind: "choice"; readonly label: string; readonly option: unknown }
  /** The node's process stands still, and goes on. */
  | { readonly kind: "pause" | "resume" }
  /** Anything else that was done to the node or its links, in words, such as `link to 3 cut`. */
  | { readonly kind: "fault"; readonly what: string }
  /** A listener was too slow or lost its connection: at least so many entries of this node are missing here. */
  | { readonly kind: "gap"; readonly dropped: number }
  /**
   * The node's picture changed in the step that the entries before this one belong to. `state` may be absent where it
   * changed only in what is held back, in how far its log is or in its position, which may be at every message.
   */
  | { readonly kind: "view"; readonly view: View; readonly state?: unknown };

/** `cut`: the fault injector cut the link; `dropped`: it dropped this one; `overflow`: the queue was full; `crashed`: the receiver crashed or restarted; `down`: it had not started yet. */
export type LossReason = "cut" | "dropped" | "overflow" | "crashed" | "down";

interface AnyVocabulary {
  state: object;
  message: { type: string };
  timer: string;
  command: { type: string };
  event: { type: string };
}

export interface TraceHeader {
  readonly kind: "trace";
  readonly version: 1;
  readonly madeBy: "simulator" | "checker" | "cluster";
  /** A name of the registry. */
  readonly protocol: string;
  /** Which form of it ran: `model` for simulator and checker, `node` on real processes. */
  readonly form: "model" | "node";
  readonly variant: string | null;
  readonly options: unknown;
  readonly nodes: readonly NodeId[];
  readonly seed: number | null;
  /** Nodes that lied, and how, as one writes Byzantine behaviours that are plain data. Absent: nobody. */
  readonly byzantine?: Readonly<Record<NodeId, unknown>>;
  /** With what of its state each node began that differs from a first one. Absent: nobody began with a state of its own. */
  readonly states?: Readonly<Record<NodeId, Readonly<Record<string, unknown>>>>;
  /** What a counterexample is one of. */
  readonly violation: {
    readonly property: string;
    readonly claim: string;
    /** The part that repeats for ever begins with the entry of this index; null where nothing repeats. */
    readonly loopFrom: number | null;
  } | null;
}

/**
 * Signatures in a recording of real processes. A replay has no keys: a signature that was made is recorded as a choice, and so
 * is one that was found to be wrong. The others were right.
 */
export const SIGNATURE = "signature";
export const WRONG_SIGNATURE = "wrong signature";

/** Tells one value that was looked at from another. */
export const signatureName = (by: NodeId, signedText: string, signature: string): string =>
  hash([by, signedText, signature]).toString(36);
