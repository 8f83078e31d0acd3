/**
 * The contract. An algorithm is a record of named handlers over a state of plain data. Handlers change `state` and record
 * effects on `ctx`. They have no access to anything else: no clock, no randomness, no socket, no disk. The simulator, the
 * checker and real processes are drivers of this one record.
 *
 * Messages, commands, records and events are values. A driver copies them when a handler sends, persists or emits them, and
 * gives each handler its own copy. So a handler may send a part of its state and then change it, and may keep a message it
 * received. In no driver would another node see such a change. The algorithms here never rely on this, and tests run them with
 * frozen messages, commands and records. Fields of messages, commands and records come in the order of their shape. Objects in
 * the state keep JavaScript's key order, so a handler may iterate over them; the checker treats states that differ in key order
 * as different. A mutable value must appear only once in a state, because a copied state would contain two separate values.
 */
import type { Shapes } from "./shape.ts";

/** A process in the textbook sense. Ids are non-negative integers. Where ids are compared, a higher id outranks a lower one. */
export type NodeId = number;

/** A value with a `type`, which distinguishes it from others of its union. */
export type Tagged = { type: string };

/** The type bag of an algorithm. Leave out the fields that the algorithm does not use. */
export interface Vocabulary {
  state: object;
  message?: Tagged;
  timer?: string;
  command?: Tagged;
  event?: Tagged;
  record?: Tagged;
  /** The algorithm's replies to commands that carry a `request`. */
  reply?: Tagged;
}

/** The state of a type bag. */
export type StateOf<V> = V extends { state: infer S extends object } ? S : never;
/** The messages of a type bag. `never` if it has none. */
export type MessageOf<V> = V extends { message: infer M extends Tagged } ? M : never;
/** The timers of a type bag. `never` if it has none. */
export type TimerOf<V> = V extends { timer: infer T extends string } ? T : never;
/** The commands of a type bag. `never` if it has none. */
export type CommandOf<V> = V extends { command: infer C extends Tagged } ? C : never;
/** The events of a type bag. `never` if it has none. */
export type EventOf<V> = V extends { event: infer E extends Tagged } ? E : never;
/** The journal records of a type bag. `never` if it has none. */
export type RecordOf<V> = V extends { record: infer R extends Tagged } ? R : never;
/** The replies of a type bag. `never` if it has none. */
export type ReplyOf<V> = V extends { reply: infer R extends Tagged } ? R : never;

/**
 * Identifies a command that expects a reply, in its field `request`. A node never receives the same id twice, even after
 * restarts.
 */
export type RequestId = number;

/**
 * The time until which an event's claim is certain, such as the end of a lease. It is when this timer of the node expires, as
 * set when the event is emitted. A driver with a clock passes that time to the application.
 */
export type Deadline<V> = TimerOf<V>;

/** A part of a node's journal. See `journal-slots.ts`. */
export type Slot = string;

/** A duration in milliseconds, or a range. The driver draws a duration from the range. */
export type Duration = number | readonly [minMs: number, maxMs: number];

/** The signing functions that a driver gives to a node. A node can sign only as itself. See `signatures.ts`. */
export interface Signatures {
  sign(text: string): string;
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
  /** Basic multicast: sends a message to every peer. */
  broadcast(message: MessageOf<V>): void;
  /** Starts the timer, or restarts it if it is running. */
  setTimer(timer: TimerOf<V>, duration: Duration): void;
  /** Stops the timer. Does nothing if it is not running. */
  cancelTimer(timer: TimerOf<V>): void;
  /**
   * Appends a record to the journal. It is durable before any later send, emit or reply, in this step or a later one, takes
   * place.
   */
  persist(record: RecordOf<V>): void;
  /**
   * Replaces all records of this part in the journal by these, in this order, such as a snapshot and the rest of a log. At
   * least one.
   */
  compact(records: readonly RecordOf<V>[]): void;
  /** Emits an event to the application, or to other parts of an assembly. */
  emit(event: EventOf<V>, until?: Deadline<V>): void;
  /**
   * Answers a command that this node received, in this step or an earlier one. Answer each command at most once. Replies to
   * commands from before a crash are dropped, since their callers no longer wait.
   */
  reply(request: RequestId, reply: ReplyOf<V>): void;
  /** Makes a free choice: drawn from a seed in the simulator, enumerated by the checker, random on a network. */
  choose<T>(label: string, options: readonly T[]): T;
  /** For `sign` and `isGenuine`. */
  readonly signatures: Signatures;
}

type Variant<U extends Tagged, K extends string> = Extract<U, { type: K }>;

/** The handlers of messages, by their `type`. */
export type ReceiveTable<V extends Vocabulary> = {
  readonly [K in MessageOf<V>["type"]]: (
    state: StateOf<V>,
    from: NodeId,
    message: Variant<MessageOf<V>, K>,
    ctx: Context<V>,
  ) => void;
};
/** The handlers of timers, by name. */
export type TimeoutTable<V extends Vocabulary> = {
  readonly [K in TimerOf<V>]: (state: StateOf<V>, ctx: Context<V>) => void;
};
/** The handlers of commands, by their `type`. */
export type CommandTable<V extends Vocabulary> = {
  readonly [K in CommandOf<V>["type"]]: (state: StateOf<V>, command: Variant<CommandOf<V>, K>, ctx: Context<V>) => void;
};
/** The handlers that restore the state from journal records, by their `type`. */
export type ReplayTable<V extends Vocabulary> = {
  readonly [K in RecordOf<V>["type"]]: (state: StateOf<V>, record: Variant<RecordOf<V>, K>) => void;
};

/** A table that is required if it has entries, and optional if it has none. */
type Table<Name extends string, T> = [keyof T] extends [never]
  ? { readonly [N in Name]?: Record<never, never> }
  : { readonly [N in Name]: T };

/** An algorithm: handlers over plain state, with the shapes, properties and costs that drivers and docs need. */
export type Protocol<V extends Vocabulary> = {
  /** The name from the literature, in kebab-case. */
  readonly name: string;
  /** The state of a node before its first start, or after losing everything but its journal. */
  init(self: NodeId, peers: readonly NodeId[]): StateOf<V>;
  /** Runs at the first start and at every restart, after the journal has been replayed. */
  start?(state: StateOf<V>, ctx: Context<V>): void;
  readonly shapes: Table<"message", Shapes<MessageOf<V>>> &
    Table<"command", Shapes<CommandOf<V>>> &
    Table<"record", Shapes<RecordOf<V>>> &
    Table<"reply", Shapes<ReplyOf<V>>>;
  /** For an assembly: the journal slots of its parts. Other algorithms leave it out. */
  readonly slots?: readonly Slot[];
  /** The publication that describes the algorithm. */
  readonly source: string;
  /** Assumptions about the environment that the properties depend on. */
  readonly assumes: readonly string[];
  readonly properties: readonly Property<V>[];
  readonly costs: readonly Cost[];
  /** A short summary of the state, for display. */
  view(state: StateOf<V>, self: NodeId): View;
} & Table<"receive", ReceiveTable<V>> &
  Table<"timeout", TimeoutTable<V>> &
  Table<"command", CommandTable<V>> &
  Table<"replay", ReplayTable<V>>;

/** The view of a property: the states of the alive nodes, and the history that the property keeps for each node. */
export interface World<S> {
  /** The nodes that are not crashed, ascending. */
  readonly alive: readonly NodeId[];
  /** All nodes including crashed ones, ascending. */
  readonly nodes: readonly NodeId[];
  state(node: NodeId): S;
  /** The property's own `history` of a node, of type `H`. Also available for crashed nodes. */
  history<H>(node: NodeId): H;
}

/**
 * The memory of a property: it is updated with each node's events, requests and replies. A crash does not erase it, so a
 * property still knows the events of crashed nodes, such as entries, deliveries and decisions. It must be plain data. For the
 * checker it is part of the state: two states that differ only in their history are different. So keep it small, and bounded.
 */
export interface History<V extends Vocabulary, H> {
  /** The history before the first event. */
  readonly empty: H;
  /** Returns the history after one more event of the node. Must not change `before`. */
  after(before: H, event: EventOf<V>): H;
  /** Returns the history after a command with a `request`, which expects a reply. */
  afterRequest?(before: H, command: CommandOf<V>): H;
  /** Returns the history after a reply to a request. */
  afterReply?(before: H, request: RequestId, reply: ReplyOf<V>): H;
}

/** A claim about all nodes together, in the words of the source. */
export type Property<V extends Vocabulary> = StateProperty<V> | LeadsTo<V>;

interface Claim<V extends Vocabulary> {
  readonly name: string;
  /** The claim as a sentence. */
  readonly claim: string;
  /** The history that the claim needs, if states alone are not enough. */
  readonly history?: History<V, unknown>;
}

/** A claim that holds in states of the whole system. */
export interface StateProperty<V extends Vocabulary> extends Claim<V> {
  /**
   * `always`: after every step. `sometimes`: at some time in some run. `eventually`: from some time on, once no more faults
   * occur. `quiescent`: whenever no message is in flight and no timer of `pendingTimers` is running.
   */
  readonly when: "always" | "sometimes" | "eventually" | "quiescent";
  /** For `quiescent`: the timers that show that the algorithm is still working. */
  readonly pendingTimers?: readonly TimerOf<V>[];
  holds(world: World<StateOf<V>>): boolean;
}

/** For each alive node: whenever `given` holds, `holds` becomes true at that time or later, or the node crashes. */
export interface LeadsTo<V extends Vocabulary> extends Claim<V> {
  readonly when: "leadsTo";
  given(world: World<StateOf<V>>, node: NodeId): boolean;
  holds(world: World<StateOf<V>>, node: NodeId): boolean;
}

/** The number of messages in one run. Messages to crashed nodes count; messages of a node to itself do not. */
export interface Cost {
  readonly when: string;
  messages(nodes: number): number;
}

/** A summary of a node's state, for display. */
export interface View {
  /** The protocol's own term for the node's current activity, such as `leader` or `campaigning`. */
  readonly role: string;
  /** The leader this node knows. Null if it knows none, absent if the protocol has no leader. */
  readonly leader?: NodeId | null;
  /** The term, epoch, ballot or view number, if the protocol has one. */
  readonly term?: number;
  /** Ids of messages that were received but are held back, oldest first. Long lists are cut. */
  readonly held?: readonly string[];
  /**
   * For a replicated log: the last index this node knows to be decided, and the last index including tentative entries. Indexes
   * start at 1; 0 means none.
   */
  readonly log?: { readonly decided: number; readonly last: number };
  /** For values that need several signatures: the nodes that have signed, and how many must. Long lists are cut. */
  readonly certificates?: readonly {
    readonly of: string;
    readonly signed: readonly NodeId[];
    readonly needed: number;
  }[];
}
