/** What `member.channel()` offers: messages to all members, in the order that was asked for. docs/channels.md says what each promises. */
import type { NodeId } from "../../core/protocol.ts";
import type { Order } from "../../protocols/multicast/channels.ts";

export type { Order };

/** The same at every member. */
export interface ChannelOptions {
  readonly order: Order;
  /**
   * `udp`: real IP multicast, as `join({ multicast })` says where. `log`: each message is an entry of the replicated log, on the disks
   * of a majority, and the order is `total` or `causal-total`. Default `tcp`.
   */
  readonly transport?: Transport | undefined;
}

export type Transport = "tcp" | "udp" | "log";

/**
 * A place where every member's messages come to every member. What one call of `member.channel()` returns is this program's
 * own use of it: closing it touches no other.
 *
 * @typeParam T plain JSON data: what another member sends is not checked against it.
 */
export interface Channel<T = unknown> extends AsyncIterable<ChannelMessage<T>>, AsyncDisposable {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  /**
   * Resolves when the guarantee is met: with `total` and `causal-total` the message has been delivered here, in order;
   * otherwise every member of the view has it.
   * Waits while readers cannot keep up, other members' or this one's.
   *
   * @throws UsageError `bad-payload` for what is not JSON, `payload-too-large`; CoordinationError `send-timeout`, `send-aborted`,
   * `channel-full`, `channel-closed`, `instance-refused`, `member-left`, `member-failed`, `send-uncertain`. Its `phase` says
   * whether nobody gets the message (`never-sent`), or whether others may have it (`uncertain`).
   */
  send(payload: T, options?: SendOptions): Promise<Sent>;
  /**
   * What is delivered here, from now on; the first reader in this process gets what has come since the channel was opened, too,
   * of which 1 MiB is kept.
   * Each call is a reader of its own, and `for await (… of channel)` is one.
   *
   * @throws CoordinationError `reader-too-slow`, once it has had all that was kept for it.
   */
  read(options?: ReadOptions): AsyncIterableIterator<ChannelMessage<T>>;
  /**
   * The same for a program that keeps a state by what it reads. It gets `{ state }` first, as that is at one place of the order
   * at another member that has it, and then all that is delivered after that place. Where no member has it, one of those that
   * read becomes the first: it gets messages at once, and its own state is that of all. `{ state }` may come again, when this
   * member had been left out of the group: it takes the place of what the program has.
   *
   * @typeParam S plain JSON data of at most 16 MiB: what another member sends is not checked against it.
   * @throws UsageError `state-needs-order`, `state-in-use`; CoordinationError `state-refused`, `reader-too-slow`.
   */
  read<S>(options: StateReadOptions<S>): AsyncIterableIterator<ChannelMessage<T> | ChannelStart<S>>;
  /** Who is in the group, at once and whenever that changes. Who reads slowly loses the oldest changes. */
  views(options?: ReadOptions): AsyncIterableIterator<ChannelView>;
  readonly status: ChannelStatus;
  /** Ends this use: readers end once they have had what waits for them, and what waits to be sent never is. */
  close(): Promise<void>;
}

export interface SendOptions {
  /** How long to wait at most. Default: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** Aborted: the wait ends; the message may still be delivered, as `phase` says. */
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface StateReadOptions<S = unknown> extends ReadOptions {
  /**
   * The state as it is now. Called between two messages, when the loop asks for the next one, so that all that it was given has
   * been applied.
   */
  readonly state: () => S;
}

/** What a reader with a state begins with. */
export interface ChannelStart<S = unknown> {
  readonly state: S;
}

/** Where a message stands. */
export interface Sent {
  /** The same at every member, and of no other message for as long as the group runs. */
  readonly id: string;
  /** The view in which it is delivered. */
  readonly view: number;
}

export interface ChannelMessage<T = unknown> extends Sent {
  readonly from: NodeId;
  readonly payload: T;
}

/**
 * `member`: messages come and go. `blocked`: the group is about to change, and what is sent waits. `outside`: in no view, or
 * not yet, or no more; the member asks to be let in. `stalled`: too few members can be heard of to agree on a view. `left`:
 * for good.
 */
export type ChannelState = "member" | "blocked" | "outside" | "stalled" | "left";

export interface ChannelView {
  /** The last view that was installed here; null before the first. Numbers grow. */
  readonly view: number | null;
  /** Of that view, ascending. */
  readonly members: readonly NodeId[];
  readonly state: ChannelState;
}

export interface ChannelStatus extends ChannelView {
  readonly order: Order;
  readonly transport: Transport;
  /** Messages of this process that wait to be multicast, and those that are on their way. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Delivered here since the channel was opened, and how many of them nobody here was there to read. */
  readonly delivered: number;
  readonly unread: number;
  /** Members whose readers cannot keep up, this one's too, so that senders wait for them. */
  readonly slow: readonly NodeId[];
}
