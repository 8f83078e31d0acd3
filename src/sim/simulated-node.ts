/** One node of a simulation: what it is given as `ctx`, and what the simulator knows of it. */
import type {
  Context,
  Duration,
  EventOf,
  MessageOf,
  NodeId,
  RecordOf,
  StateOf,
  TimerOf,
  View,
  Vocabulary,
} from "../core/protocol.ts";
import type { Journal } from "./journal.ts";
import type { Outgoing } from "./links.ts";

/** What handlers do through `ctx`, with the node that does it. */
export interface Effects<V extends Vocabulary> {
  peers(node: SimulatedNode<V>): readonly NodeId[];
  send(node: SimulatedNode<V>, to: NodeId, message: MessageOf<V>): void;
  broadcast(node: SimulatedNode<V>, message: MessageOf<V>): void;
  setTimer(node: SimulatedNode<V>, timer: TimerOf<V>, duration: Duration): void;
  cancelTimer(node: SimulatedNode<V>, timer: TimerOf<V>): void;
  persist(node: SimulatedNode<V>, record: RecordOf<V>): void;
  compact(node: SimulatedNode<V>, record: RecordOf<V>): void;
  emit(node: SimulatedNode<V>, event: EventOf<V>): void;
  choose<T>(node: SimulatedNode<V>, label: string, options: readonly T[]): T;
}

/** A timer that runs. An event that carries another number than its last arming is stale. */
export interface Arming {
  readonly number: number;
  readonly at: number;
}

/** A class, and what is seldom needed is made when it is: there may be a million of these. */
export class SimulatedNode<V extends Vocabulary> implements Context<V> {
  /** Undefined while the node is down. */
  state: StateOf<V> | undefined = undefined;
  incarnation = 0;
  isPaused = false;
  /** Working on a stimulus, or about to take up the next one that waits. */
  isBusy = false;
  /** Its links, where they are not all alike. */
  outgoing: Outgoing | null = null;
  journal: Journal<RecordOf<V>> | null = null;
  armed: Map<TimerOf<V>, Arming> | null = null;
  /** When what it sends now leaves. */
  doneAt = 0;
  /** How fast its clock goes. */
  rate = 1;
  events: EventOf<V>[] | null = null;
  /** What has come while it was paused or busy, as slots of the simulation. */
  waiting: number[] | null = null;
  /** The last view that was traced. */
  view: View | null = null;
  private knownPeers: readonly NodeId[] | null = null;

  constructor(
    readonly self: NodeId,
    /** Among all nodes, ascending by id. */
    readonly place: number,
    private readonly effects: Effects<V>,
  ) {}

  get peers(): readonly NodeId[] {
    this.knownPeers ??= this.effects.peers(this);
    return this.knownPeers;
  }
  send(to: NodeId, message: MessageOf<V>): void {
    this.effects.send(this, to, message);
  }
  broadcast(message: MessageOf<V>): void {
    this.effects.broadcast(this, message);
  }
  setTimer(timer: TimerOf<V>, duration: Duration): void {
    this.effects.setTimer(this, timer, duration);
  }
  cancelTimer(timer: TimerOf<V>): void {
    this.effects.cancelTimer(this, timer);
  }
  persist(record: RecordOf<V>): void {
    this.effects.persist(this, record);
  }
  compact(record: RecordOf<V>): void {
    this.effects.compact(this, record);
  }
  emit(event: EventOf<V>): void {
    this.effects.emit(this, event);
  }
  choose<T>(label: string, options: readonly T[]): T {
    return this.effects.choose(this, label, options);
  }
}
