/**
 * The API of `member.channel()`: messages to all members, in a chosen order. For the guarantees, see
 * docs/guide/channels.md.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Order } from "../../protocols/multicast/family/channels.ts";

export type { Order };

/** Options for `Member.channel()`. Must be the same at every member. */
export interface ChannelOptions {
  /** The delivery order. docs/guide/channels.md compares the orders. */
  readonly order: Order;
  /**
   * `tcp` uses the links between members. `udp` uses IP multicast, with the group and port given to
   * `join({ multicast })`. With `log`, each message is an entry in the replicated log, on the disks of a majority, and
   * the order must be `total` or `causal-total`. Default: `tcp`.
   */
  readonly transport?: Transport | undefined;
}

/** How a channel transmits its messages. */
export type Transport = "tcp" | "udp" | "log";

/**
 * Delivers messages from every member to every member that has the channel open. Each call to `member.channel()`
 * returns a separate handle. Closing one handle does not affect the others.
 *
 * @typeParam T plain JSON data. Messages from other members are not checked against it.
 */
export interface Channel<T = unknown> extends AsyncIterable<ChannelMessage<T>>, AsyncDisposable {
  /** The name given to `channel()`. */
  readonly name: string;
  /** The delivery order of the channel. */
  readonly order: Order;
  /** How the channel transmits its messages. */
  readonly transport: Transport;
  /**
   * Multicasts a message. With the orders `total` and `causal-total`, resolves when the message has been delivered at
   * this member, in order. With other orders, resolves when every member of the view has received it. Waits as long as
   * a reader at any member cannot keep up.
   *
   * @throws UsageError `bad-payload` if the value is not JSON, `payload-too-large`; CoordinationError `send-timeout`,
   *   `send-aborted`, `channel-full`, `channel-closed`, `instance-refused`, `member-left`, `member-failed`,
   *   `send-uncertain`. The error's `phase` is `never-sent` if no member gets the message, and `uncertain` if some may
   *   have it
   */
  send(payload: T, options?: SendOptions): Promise<Sent>;
  /**
   * Iterates over the messages delivered at this member, from now on. The first reader in this process also gets
   * earlier messages, up to 1 MiB since the channel was opened. Each call returns a separate reader, and so does each
   * `for await (… of channel)`.
   *
   * @example
   * for await (const { from, payload } of channel.read({ signal })) console.log(from, payload);
   * @throws CoordinationError `reader-too-slow`, after the messages that were retained for the reader
   */
  read(options?: ReadOptions): AsyncIterableIterator<ChannelMessage<T>>;
  /**
   * Reads messages into a state that the caller computes. The first item is `{ state }`, another member's state at some
   * position in the order. Every message after that position follows. If no member has a state, one of the readers
   * becomes the first: it gets messages immediately, and its own state becomes the group's state. If this member is
   * expelled from the group and enters again, another `{ state }` arrives. Replace your state with it.
   *
   * @typeParam S plain JSON data of at most 16 MiB. State from other members is not checked against it
   * @throws UsageError `state-needs-order`, `state-in-use`; CoordinationError `state-refused`, `reader-too-slow`
   */
  read<S>(options: StateReadOptions<S>): AsyncIterableIterator<ChannelMessage<T> | ChannelStart<S>>;
  /** Yields the view immediately, and again after each change. A slow reader loses the oldest changes. */
  views(options?: ReadOptions): AsyncIterableIterator<ChannelView>;
  /** A snapshot of the channel's status at this member, as plain data. */
  readonly status: ChannelStatus;
  /**
   * Closes this handle. Its readers end after the messages that are already queued for them. Messages that have not
   * been sent yet are dropped.
   */
  close(): Promise<void>;
}

/** Options for `Channel.send()`. */
export interface SendOptions {
  /** The maximum time to wait. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /**
   * Aborting it ends the wait. The message may still be delivered; the error's `phase` reports whether that is
   * possible.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options for `Channel.read()`. */
export interface ReadOptions {
  /** Aborting it ends the iteration. */
  readonly signal?: AbortSignal | undefined;
}

/** Options for `Channel.read()` with a stateful reader. */
export interface StateReadOptions<S = unknown> extends ReadOptions {
  /**
   * Returns the current state. It is called between two messages, when the loop requests the next one, so the state
   * must reflect every earlier message.
   */
  readonly state: () => S;
}

/** The first item that a stateful reader yields. */
export interface ChannelStart<S = unknown> {
  /** The state to start from. Every later message from the reader applies to it. */
  readonly state: S;
}

/** The id of a message, and its view. */
export interface Sent {
  /** The message's id. It is unique, and the same at every member. */
  readonly id: string;
  /** The number of the view that the message is delivered in. */
  readonly view: number;
}

/** A delivered message. */
export interface ChannelMessage<T = unknown> extends Sent {
  /** The id of the sender. */
  readonly from: NodeId;
  /** The value that the sender passed to `send()`. */
  readonly payload: T;
}

/**
 * `member`: in the view. `blocked`: the group is about to change, and messages wait. `outside`: not in the view,
 * because the member has not entered yet or was expelled. It enters automatically. `stalled`: this member does not know
 * who leads the log, so messages wait and views do not change. `left`: the member has left permanently.
 */
export type ChannelState = "member" | "blocked" | "outside" | "stalled" | "left";

/** A view of the group, and this member's state in it. */
export interface ChannelView {
  /**
   * The last view installed at this member. Null before the first one. View numbers are log revisions, so they
   * increase, with gaps.
   */
  readonly view: number | null;
  /** The members of that view, ascending. */
  readonly members: readonly NodeId[];
  /** This member's state in the group. */
  readonly state: ChannelState;
}

/** The state of a channel at this member. */
export interface ChannelStatus extends ChannelView {
  /** The delivery order of the channel. */
  readonly order: Order;
  /** How the channel transmits its messages. */
  readonly transport: Transport;
  /** The number of messages from this process that are waiting to be multicast. */
  readonly waiting: number;
  /** The number of messages from this process that have been multicast, but whose `send()` has not resolved yet. */
  readonly inFlight: number;
  /** The number of messages delivered at this member since the channel was opened. */
  readonly delivered: number;
  /** The number of delivered messages that had no reader. */
  readonly unread: number;
  /** The members whose readers cannot keep up, including this one. Senders wait for them. */
  readonly slow: readonly NodeId[];
}
