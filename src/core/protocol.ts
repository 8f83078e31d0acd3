/**
 * The contract that every protocol implements. An algorithm is a record of named handlers that operate on a plain-data
 * state. Handlers change `state` and record effects on `ctx`. They have no access to anything else: no clock, no
 * randomness, no sockets, no disk. The simulator, the checker and real processes are all drivers of this one record.
 *
 * Messages, commands, records and events are values. A driver copies them when a handler sends, persists or emits them,
 * and gives each handler its own copy. So a handler may send part of its state and change it afterwards, and it may
 * keep a message that it received. No driver lets another node see such a change. The algorithms here never rely on
 * this, and tests run them with frozen messages, commands and records. The fields of messages, commands and records
 * appear in the order that their shape declares. Objects in the state keep JavaScript's key order, so a handler may
 * iterate over them; the checker treats states that differ in key order as different. A mutable object must appear only
 * once in a state, because a copy of the state would contain two separate objects.
 */
import type { Shapes } from "./shape.ts";

/**
 * Identifies a node, which is a process in textbook terms. Ids are non-negative integers. If an algorithm compares ids,
 * a higher id outranks a lower one.
 */
export type NodeId = number;

/** A value with a `type` that distinguishes it from the other members of its union. */
export type Tagged = { type: string };

/** The type bag of an algorithm. Omit the fields that the algorithm does not use. */
export interface Vocabulary {
  /** The state of a node: plain data, changed only by handlers. */
  state: object;
  /** The messages between nodes. */
  message?: Tagged;
  /** The names of the timers. */
  timer?: string;
  /** The requests from the application, or from another part of an assembly. */
  command?: Tagged;
  /** The notifications from a node to the application, or to another part of an assembly. */
  event?: Tagged;
  /** The records in a node's journal. */
  record?: Tagged;
  /** The algorithm's replies to commands that carry a `request`. */
  reply?: Tagged;
}

/** The state type of a type bag. */
export type StateOf<V> = V extends { state: infer S extends object } ? S : never;
/** The message type of a type bag. `never` if it has none. */
export type MessageOf<V> = V extends { message: infer M extends Tagged } ? M : never;
/** The timer names of a type bag. `never` if it has none. */
export type TimerOf<V> = V extends { timer: infer T extends string } ? T : never;
/** The command type of a type bag. `never` if it has none. */
export type CommandOf<V> = V extends { command: infer C extends Tagged } ? C : never;
/** The event type of a type bag. `never` if it has none. */
export type EventOf<V> = V extends { event: infer E extends Tagged } ? E : never;
/** The journal record type of a type bag. `never` if it has none. */
export type RecordOf<V> = V extends { record: infer R extends Tagged } ? R : never;
/** The reply type of a type bag. `never` if it has none. */
export type ReplyOf<V> = V extends { reply: infer R extends Tagged } ? R : never;

/**
 * Identifies a command that expects a reply. The command carries it in its `request` field. A node never receives the
 * same id twice, even after restarts.
 */
export type RequestId = number;

/**
 * The time until which an event is guaranteed to remain true, such as the end of a lease. It is the name of one of the
 * node's timers: the guarantee ends when that timer, as set when the event was emitted, expires. A driver with a clock
 * passes the expiry time to the application.
 */
export type Deadline<V> = TimerOf<V>;

/** A part of a node's journal. See `journal-slots.ts`. */
export type Slot = string;

/** A duration in milliseconds, or a range. The driver picks a random duration from the range. */
export type Duration = number | readonly [minMs: number, maxMs: number];

/** The signing functions that a driver provides to a node. A node can sign only as itself. See `signatures.ts`. */
export interface Signatures {
  /** Returns this node's signature of the text. */
  sign(text: string): string;
  /** Returns whether `signature` is the signature of the text by node `by`. */
  isSigned(by: NodeId, text: string, signature: string): boolean;
}

/** Everything a handler can do besides changing its state. Effects take place in the order they were recorded. */
export interface Context<V extends Vocabulary> {
  /** The id of this node. */
  readonly self: NodeId;
  /** The other nodes, ascending, without `self`. */
  readonly peers: readonly NodeId[];
  /** Sends a message to one node, which may be the node itself. */
  send(to: NodeId, message: MessageOf<V>): void;
  /** Sends a message to every peer (basic multicast). */
  broadcast(message: MessageOf<V>): void;
  /** Starts the timer, or restarts it if it is running. */
  setTimer(timer: TimerOf<V>, duration: Duration): void;
  /** Stops the timer. Does nothing if it is not running. */
  cancelTimer(timer: TimerOf<V>): void;
  /**
   * Appends a record to the journal. The record becomes durable before any later send, emit or reply takes effect,
   * whether in this step or in a later one.
   */
  persist(record: RecordOf<V>): void;
  /**
   * Replaces all of this part's records in the journal with the given ones, such as a snapshot followed by the rest of
   * a log. Pass at least one record.
   */
  compact(records: readonly RecordOf<V>[]): void;
  /**
   * Emits an event to the application, or to other parts of an assembly. If `until` is given, the event is guaranteed
   * to remain true until that deadline.
   */
  emit(event: EventOf<V>, until?: Deadline<V>): void;
  /**
   * Replies to a command that this node received in this step or an earlier one. Reply to each command at most once.
   * Replies to commands from before a crash are dropped, because their callers are no longer waiting.
   */
  reply(request: RequestId, reply: ReplyOf<V>): void;
  /**
   * Makes an arbitrary choice. The simulator draws it from a seed, the checker explores every option, and on a network
   * it is random.
   */
  choose<T>(label: string, options: readonly T[]): T;
  /** The signing functions of this node, for `sign` and `isGenuine`. */
  readonly signatures: Signatures;
}

type Variant<U extends Tagged, K extends string> = Extract<U, { type: K }>;

/** The message handlers, keyed by message `type`. */
export type ReceiveTable<V extends Vocabulary> = {
  readonly [K in MessageOf<V>["type"]]: (
    state: StateOf<V>,
    from: NodeId,
    message: Variant<MessageOf<V>, K>,
    ctx: Context<V>,
  ) => void;
};
/** The timeout handlers, keyed by timer name. */
export type TimeoutTable<V extends Vocabulary> = {
  readonly [K in TimerOf<V>]: (state: StateOf<V>, ctx: Context<V>) => void;
};
/** The command handlers, keyed by command `type`. */
export type CommandTable<V extends Vocabulary> = {
  readonly [K in CommandOf<V>["type"]]: (state: StateOf<V>, command: Variant<CommandOf<V>, K>, ctx: Context<V>) => void;
};
/** The handlers that restore the state from journal records, keyed by record `type`. */
export type ReplayTable<V extends Vocabulary> = {
  readonly [K in RecordOf<V>["type"]]: (state: StateOf<V>, record: Variant<RecordOf<V>, K>) => void;
};

/** A table that is required if it has entries, and optional if it has none. */
type Table<Name extends string, T> = [keyof T] extends [never]
  ? { readonly [N in Name]?: Record<never, never> }
  : { readonly [N in Name]: T };

/** An algorithm: its handlers, and the shapes, properties and costs that drivers and docs need. */
export type Protocol<V extends Vocabulary> = {
  /** The name from the literature, in kebab-case. */
  readonly name: string;
  /** Returns the state of a node before its first start, or after it has lost everything except its journal. */
  init(self: NodeId, peers: readonly NodeId[]): StateOf<V>;
  /** Runs at the first start and at every restart, after the journal has been replayed. */
  start?(state: StateOf<V>, ctx: Context<V>): void;
  /**
   * The shapes of messages, commands, records and replies, keyed by `type`. Drivers use them to validate and encode
   * values.
   */
  readonly shapes: Table<"message", Shapes<MessageOf<V>>> &
    Table<"command", Shapes<CommandOf<V>>> &
    Table<"record", Shapes<RecordOf<V>>> &
    Table<"reply", Shapes<ReplyOf<V>>>;
  /** For an assembly: the journal slots of its parts. Other algorithms omit this field. */
  readonly slots?: readonly Slot[];
  /** The publication that describes the algorithm. */
  readonly source: string;
  /** Assumptions about the environment that the properties depend on. */
  readonly assumes: readonly string[];
  /** The claims that the source makes. The simulator and the checker evaluate them. */
  readonly properties: readonly Property<V>[];
  /** The message counts that the source states. */
  readonly costs: readonly Cost[];
  /** Returns a short summary of the state, for display. */
  view(state: StateOf<V>, self: NodeId): View;
} & Table<"receive", ReceiveTable<V>> &
  Table<"timeout", TimeoutTable<V>> &
  Table<"command", CommandTable<V>> &
  Table<"replay", ReplayTable<V>>;

/**
 * The part of the system that a property can see: the states of the alive nodes, and the history that the property
 * keeps for each node.
 */
export interface World<S> {
  /** The nodes that are currently running, in ascending order. */
  readonly alive: readonly NodeId[];
  /** All nodes, including crashed ones, in ascending order. */
  readonly nodes: readonly NodeId[];
  /** Returns the current state of an alive node. */
  state(node: NodeId): S;
  /** Returns the history, of type `H`, that the property keeps for a node. It is also available for crashed nodes. */
  history<H>(node: NodeId): H;
}

/**
 * A property's memory of each node's events, requests and replies. A crash does not erase it, so a property still
 * remembers the events of crashed nodes, such as entries, deliveries and decisions. It must be plain data. The checker
 * treats it as part of the state: two states that differ only in their history are different. Keep it small and
 * bounded.
 */
export interface History<V extends Vocabulary, H> {
  /** The history before the first event. */
  readonly empty: H;
  /** Returns the history after another event from the node. Must not change `before`. */
  after(before: H, event: EventOf<V>): H;
  /** Returns the history after a command that expects a reply (one with a `request`). */
  afterRequest?(before: H, command: CommandOf<V>): H;
  /** Returns the history after a reply to a request. */
  afterReply?(before: H, request: RequestId, reply: ReplyOf<V>): H;
}

/** A claim about the whole system, worded as in the paper that the protocol implements. */
export type Property<V extends Vocabulary> = StateProperty<V> | LeadsTo<V>;

interface Claim<V extends Vocabulary> {
  readonly name: string;
  /** The claim as a sentence. */
  readonly claim: string;
  /** The history that the claim needs, if states alone are not enough. */
  readonly history?: History<V, unknown>;
}

/** A claim about individual states of the whole system. */
export interface StateProperty<V extends Vocabulary> extends Claim<V> {
  /**
   * When the claim must hold. `always`: after every step. `sometimes`: at some point in at least one run. `eventually`:
   * from some point on, once no more faults occur. `quiescent`: whenever no message is in flight and no timer of
   * `pendingTimers` is running.
   */
  readonly when: "always" | "sometimes" | "eventually" | "quiescent";
  /** For `quiescent`: the timers that run only while the algorithm still has work to do. */
  readonly pendingTimers?: readonly TimerOf<V>[];
  /** Returns whether the claim is true in this state. Must not change the world. */
  holds(world: World<StateOf<V>>): boolean;
}

/**
 * For each alive node: whenever `given` is true, `holds` is true then or becomes true later, unless the node crashes.
 */
export interface LeadsTo<V extends Vocabulary> extends Claim<V> {
  /** Distinguishes this claim from a `StateProperty`. */
  readonly when: "leadsTo";
  /** Returns whether the node is currently waiting for something. */
  given(world: World<StateOf<V>>, node: NodeId): boolean;
  /** Returns whether the node's wait is over. */
  holds(world: World<StateOf<V>>, node: NodeId): boolean;
}

/** The number of messages in one run. Messages to crashed nodes count; messages that a node sends to itself do not. */
export interface Cost {
  /** The kind of run whose messages are counted, such as `one uncontended proposal`. */
  readonly when: string;
  /** Returns the number of messages for the given number of nodes. */
  messages(nodes: number): number;
}

/** A summary of a node's state, for display. */
export interface View {
  /** The protocol's own term for the node's current activity, such as `leader` or `campaigning`. */
  readonly role: string;
  /**
   * The current leader, as far as this node knows. Null if it does not know of one, absent if the protocol has no
   * leader.
   */
  readonly leader?: NodeId | null;
  /** The term, epoch, ballot or view number, if the protocol has one. */
  readonly term?: number;
  /** Ids of messages that have been received but are held back, oldest first. Long lists are truncated. */
  readonly held?: readonly string[];
  /**
   * For a replicated log: the last index that this node knows to be decided, and the last index including tentative
   * entries. Indexes start at 1; 0 means none.
   */
  readonly log?: { readonly decided: number; readonly last: number };
  /**
   * For values that need several signatures: the nodes that have signed, and the number required. Long lists are
   * truncated.
   */
  readonly certificates?: readonly {
    readonly of: string;
    readonly signed: readonly NodeId[];
    readonly needed: number;
  }[];
}
