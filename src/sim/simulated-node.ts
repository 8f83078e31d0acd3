/** A node in a simulation: its `ctx`, and the simulator's data about the node. */
import type {
  Context,
  Deadline,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  RecordOf,
  ReplyOf,
  RequestId,
  Signatures,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
} from "../core/protocol.ts";
import { idealSignatures } from "../core/signatures.ts";
import { requireFewEffects } from "../driver/handler-failure.ts";
import type { Answer, RequestStatus } from "../driver/requests.ts";
import type { Remembered } from "../trace/histories.ts";
import type { CrashFate, Journal } from "./journal.ts";
import type { Outgoing } from "./links.ts";

/** The effects of handlers. Each function takes the node that causes the effect. */
export interface Effects<V extends Vocabulary> {
  peers(node: SimulatedNode<V>): readonly NodeId[];
  send(node: SimulatedNode<V>, to: NodeId, message: MessageOf<V>): void;
  broadcast(node: SimulatedNode<V>, message: MessageOf<V>): void;
  setTimer(node: SimulatedNode<V>, timer: TimerOf<V>, duration: Duration): void;
  cancelTimer(node: SimulatedNode<V>, timer: TimerOf<V>): void;
  persist(node: SimulatedNode<V>, record: RecordOf<V>): void;
  compact(node: SimulatedNode<V>, records: readonly RecordOf<V>[]): void;
  emit(node: SimulatedNode<V>, event: EventOf<V>, until: Deadline<V> | undefined): void;
  choose<T>(node: SimulatedNode<V>, label: string, options: readonly T[]): T;
  reply(node: SimulatedNode<V>, request: RequestId, reply: ReplyOf<V>): void;
}

/** A running timer. A timeout event with a different number is stale. */
export interface Arming {
  readonly number: number;
  readonly at: number;
}

/**
 * Effects that do nothing, for a node that crashes in the middle of a handler: the handler runs to completion without
 * any effect.
 */
const nothing: Effects<never> = {
  peers: () => [],
  send: () => undefined,
  broadcast: () => undefined,
  setTimer: () => undefined,
  cancelTimer: () => undefined,
  persist: () => undefined,
  compact: () => undefined,
  emit: () => undefined,
  choose: (_node, _label, options) => options[0] as never,
  reply: () => undefined,
};

/** A simulated node. It is a class with lazily created fields, because there may be a million nodes. */
export class SimulatedNode<V extends Vocabulary> implements Context<V> {
  /** The state. Undefined while the node is down. */
  state: StateOf<V> | undefined = undefined;
  incarnation = 0;
  isPaused = false;
  /** Whether the node is handling a stimulus or is about to take the next one from the queue. */
  isBusy = false;
  /** The node's outgoing links. Null if all links are alike. */
  outgoing: Outgoing | null = null;
  journal: Journal<RecordOf<V>> | null = null;
  armed: Map<TimerOf<V>, Arming> | null = null;
  /** The time when messages sent now will leave. */
  doneAt = 0;
  /** The speed of the node's clock relative to the others. */
  rate = 1;
  events: EventOf<V>[] | null = null;
  replies: Answer<V>[] | null = null;
  /** The status of the node's requests, including those made before a crash. */
  requests: Map<RequestId, RequestStatus> | null = null;
  /** Stimuli that arrived while the node was paused or busy, as slots of the `PendingPool`. */
  waiting: number[] | null = null;
  /** The histories that properties keep for the node. They survive crashes. */
  history: Remembered = [];
  /** The most recent view in the trace. */
  view: View | null = null;
  /** What happens to the journal, if the node crashes within its current step. Otherwise null. */
  struck: CrashFate | null = null;
  /** The number of effects so far in the current step. */
  effectCount = 0;
  private knownPeers: readonly NodeId[] | null = null;

  constructor(
    readonly self: NodeId,
    /** The node's index among all nodes in ascending order of id. */
    readonly place: number,
    private readonly effects: Effects<V>,
  ) {}

  private get does(): Effects<V> {
    requireFewEffects(++this.effectCount);
    return this.struck === null ? this.effects : nothing;
  }
  get peers(): readonly NodeId[] {
    this.knownPeers ??= this.effects.peers(this);
    return this.knownPeers;
  }
  send(to: NodeId, message: MessageOf<V>): void {
    this.does.send(this, to, message);
  }
  broadcast(message: MessageOf<V>): void {
    this.does.broadcast(this, message);
  }
  setTimer(timer: TimerOf<V>, duration: Duration): void {
    this.does.setTimer(this, timer, duration);
  }
  cancelTimer(timer: TimerOf<V>): void {
    this.does.cancelTimer(this, timer);
  }
  persist(record: RecordOf<V>): void {
    this.does.persist(this, record);
  }
  compact(records: readonly RecordOf<V>[]): void {
    this.does.compact(this, records);
  }
  emit(event: EventOf<V>, until?: Deadline<V>): void {
    this.does.emit(this, event, until);
  }
  choose<T>(label: string, options: readonly T[]): T {
    return this.does.choose(this, label, options);
  }
  reply(request: RequestId, reply: ReplyOf<V>): void {
    this.does.reply(this, request, reply);
  }
  get signatures(): Signatures {
    return idealSignatures(this.self);
  }
}
