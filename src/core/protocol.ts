/**
 * The contract. An algorithm is a record of named handlers over plain-data state; handlers change `state` and record
 * effects on `ctx`. Nothing else exists for them: no clock, no randomness, no socket, no disk. Simulator, checker and
 * real processes are drivers of this one record.
 *
 * Messages, commands, records and events are values. What a handler sends, persists or emits is copied there and then;
 * what it is given is its own. So it may send a piece of its state and go on changing it, and may keep what it received.
 * Nobody else would see it change that, in any driver; still the algorithms here never do, and are tried with frozen messages,
 * commands and records. The fields of messages, commands and records come in the order of their
 * shape. The keys of an object in the state stand in the order in which JavaScript keeps them, and the checker takes states
 * that differ in it for two, so a handler may go through them. Within one state nothing may stand in two places and be
 * changed in place: a copied state has two of it.
 */
import type { Shapes } from "./shape.ts";

/** A process of the textbook. Ids are naturals; a bigger id outranks a smaller one where ids are compared. */
export type NodeId = number;

export type Tagged = { type: string };

/** The type bag of an algorithm. What is left out does not exist for it. */
export interface Vocabulary {
  state: object;
  message?: Tagged;
  timer?: string;
  command?: Tagged;
  event?: Tagged;
  record?: Tagged;
  /** What it answers to commands that carry a `request`. */
  reply?: Tagged;
}

export type StateOf<V> = V extends { state: infer S extends object } ? S : never;
export type MessageOf<V> = V extends { message: infer M extends Tagged } ? M : never;
export type TimerOf<V> = V extends { timer: infer T extends string } ? T : never;
export type CommandOf<V> = V extends { command: infer C extends Tagged } ? C : never;
export type EventOf<V> = V extends { event: infer E extends Tagged } ? E : never;
export type RecordOf<V> = V extends { record: infer R extends Tagged } ? R : never;
export type ReplyOf<V> = V extends { reply: infer R extends Tagged } ? R : never;

/**
 * Names a command that is to be answered, in its field `request`: unique among all that the node is ever given, in whichever
 * of its lives.
 */
export type RequestId = number;

/**
 * Up to when what an event says is certain, as a lease is: until this timer of the node runs out, as it is set when the event is
 * emitted. A driver with a clock tells the application that instant.
 */
export type Deadline<V> = TimerOf<V>;

/** What part of a node's journal: see `journal-slots.ts`. */
export type Slot = string;

/** A duration in milliseconds, or a range from which the driver draws one. */
export type Duration = number | readonly [minMs: number, maxMs: number];

/** What a driver gives a node to sign with, as itself alone: see `signatures.ts`. */
export interface Signatures {
  sign(text: string): string;
  isSigned(by: NodeId, text: string, signature: string): boolean;
}

/** All that a handler may do besides changing its state. Effects take place in the order in which they were recorded. */
export interface Context<V extends Vocabulary> {
  readonly self: NodeId;
  /** The other nodes, ascending, without self. */
  readonly peers: readonly NodeId[];
  send(to: NodeId, message: MessageOf<V>): void;
  /** Basic multicast: sends to every peer. */
  broadcast(message: MessageOf<V>): void;
  /** Arms the timer, or re-arms it if it runs already. */
  setTimer(timer: TimerOf<V>, duration: Duration): void;
  cancelTimer(timer: TimerOf<V>): void;
  /** Journals a record. It is durable before anything that comes after it, in this step or a later one, is sent, emitted or answered. */
  persist(record: RecordOf<V>): void;
  /** Replaces all that this part has journalled so far by these records, in this order: a snapshot, what is left of a log. At least one. */
  compact(records: readonly RecordOf<V>[]): void;
  /** Tells the application, or another part of an assembly, what has happened. */
  emit(event: EventOf<V>, until?: Deadline<V>): void;
  /**
   * Answers a command that this node was given, now or in an earlier step. Each is answered once at most; what was given before
   * the node crashed nobody waits for, and its reply is dropped.
   */
  reply(request: RequestId, reply: ReplyOf<V>): void;
  /** A free choice: drawn from a seed in the simulator, enumerated by the checker, random on a network. */
  choose<T>(label: string, options: readonly T[]): T;
  /** For `sign` and `isGenuine`. */
  readonly signatures: Signatures;
}

type Variant<U extends Tagged, K extends string> = Extract<U, { type: K }>;

export type ReceiveTable<V extends Vocabulary> = {
  readonly [K in MessageOf<V>["type"]]: (
    state: StateOf<V>,
    from: NodeId,
    message: Variant<MessageOf<V>, K>,
    ctx: Context<V>,
  ) => void;
};
export type TimeoutTable<V extends Vocabulary> = {
  readonly [K in TimerOf<V>]: (state: StateOf<V>, ctx: Context<V>) => void;
};
export type CommandTable<V extends Vocabulary> = {
  readonly [K in CommandOf<V>["type"]]: (state: StateOf<V>, command: Variant<CommandOf<V>, K>, ctx: Context<V>) => void;
};
export type ReplayTable<V extends Vocabulary> = {
  readonly [K in RecordOf<V>["type"]]: (state: StateOf<V>, record: Variant<RecordOf<V>, K>) => void;
};

/** A table that must be there when it has entries, and may be left out when it has none. */
type Table<Name extends string, T> = [keyof T] extends [never]
  ? { readonly [N in Name]?: Record<never, never> }
  : { readonly [N in Name]: T };

export type Protocol<V extends Vocabulary> = {
  /** As the literature calls it, in kebab-case. */
  readonly name: string;
  /** The state of a node that has never run, or that lost all but its journal. */
  init(self: NodeId, peers: readonly NodeId[]): StateOf<V>;
  /** The first start and every restart, after the journal has been replayed. */
  start?(state: StateOf<V>, ctx: Context<V>): void;
  readonly shapes: Table<"message", Shapes<MessageOf<V>>> &
    Table<"command", Shapes<CommandOf<V>>> &
    Table<"record", Shapes<RecordOf<V>>> &
    Table<"reply", Shapes<ReplyOf<V>>>;
  /** Of an assembly, where its parts journal. An algorithm by itself leaves it out. */
  readonly slots?: readonly Slot[];
  /** Where the algorithm was published. */
  readonly source: string;
  /** What must be true of the surroundings for the properties to hold. */
  readonly assumes: readonly string[];
  readonly properties: readonly Property<V>[];
  readonly costs: readonly Cost[];
  /** A small picture of the state, for people. */
  view(state: StateOf<V>, self: NodeId): View;
} & Table<"receive", ReceiveTable<V>> &
  Table<"timeout", TimeoutTable<V>> &
  Table<"command", CommandTable<V>> &
  Table<"replay", ReplayTable<V>>;

/** What a property may look at: the states of the alive nodes, and what it has asked to be remembered of all. */
export interface World<S> {
  /** Ascending. */
  readonly alive: readonly NodeId[];
  /** All nodes, those that are down among them, ascending. */
  readonly nodes: readonly NodeId[];
  state(node: NodeId): S;
  /** What the property's own `history` has come to, which is an `H`; of a node that is down as well. */
  history<H>(node: NodeId): H;
}

/**
 * What a property remembers of the events of each node, and of requests and replies. A crash takes nothing of it, so a property sees what crashed nodes
 * have entered, delivered or decided. It is plain data, and for the checker a part of the state: two states that differ
 * in it alone are two. So it should hold little, and nothing that grows for ever.
 */
export interface History<V extends Vocabulary, H> {
  /** Before the first event. */
  readonly empty: H;
  /** After one more event of the node. What was before is not changed. */
  after(before: H, event: EventOf<V>): H;
  /** After a command that the node is to answer, which says so in its field `request`. */
  afterRequest?(before: H, command: CommandOf<V>): H;
  /** After a reply that somebody waited for. */
  afterReply?(before: H, request: RequestId, reply: ReplyOf<V>): H;
}

/** A claim about all nodes together, in the book's words. */
export type Property<V extends Vocabulary> = StateProperty<V> | LeadsTo<V>;

interface Claim<V extends Vocabulary> {
  readonly name: string;
  /** In words. */
  readonly claim: string;
  /** What is remembered for it, if states alone do not tell. */
  readonly history?: History<V, unknown>;
}

export interface StateProperty<V extends Vocabulary> extends Claim<V> {
  /**
   * `always`: after every step. `sometimes`: at some time in some run. `eventually`: from some time on, once nothing more
   * goes wrong. `quiescent`: whenever no message is in flight and nobody waits for a timer of `pendingTimers`.
   */
  readonly when: "always" | "sometimes" | "eventually" | "quiescent";
  /** For `quiescent`: the timers that mean that the algorithm is still at work. */
  readonly pendingTimers?: readonly TimerOf<V>[];
  holds(world: World<StateOf<V>>): boolean;
}

/** For each alive node: whenever `given` holds of it, `holds` does then or later, or the node crashes. */
export interface LeadsTo<V extends Vocabulary> extends Claim<V> {
  readonly when: "leadsTo";
  given(world: World<StateOf<V>>, node: NodeId): boolean;
  holds(world: World<StateOf<V>>, node: NodeId): boolean;
}

/** How many messages one run costs, self-sends not counted, messages to crashed nodes counted. */
export interface Cost {
  readonly when: string;
  messages(nodes: number): number;
}

export interface View {
  /** The protocol's own word for what the node is doing, such as `leader` or `campaigning`. */
  readonly role: string;
  /** Who leads in this node's eyes; null while it knows of nobody; absent where the protocol knows no leader. */
  readonly leader?: NodeId | null;
  /** Term, epoch, ballot or view number, where the protocol has one. */
  readonly term?: number;
  /** Ids of messages that have been received and are held back, the oldest first; of very many only the first few. */
  readonly held?: readonly string[];
  /** Of a replicated log: up to which place this node knows it to be decided, and how far it reaches with what is tentative. Places count from 1; 0 is none. */
  readonly log?: { readonly decided: number; readonly last: number };
  /** Of what many have to sign before it counts: who has, and how many must. Of many only the first few. */
  readonly certificates?: readonly {
    readonly of: string;
    readonly signed: readonly NodeId[];
    readonly needed: number;
  }[];
}
