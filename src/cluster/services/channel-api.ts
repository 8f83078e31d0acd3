/** The API of `member.channel()`: messages to all members, in a chosen order. Guarantees: docs/guide/channels.md. */
import type { NodeId } from "../../core/protocol.ts";
import type { Order } from "../../protocols/multicast/family/channels.ts";

export type { Order };

/** Options of `Member.channel()`, the same at every member. */
export interface ChannelOptions {
  readonly order: Order;
  /**
   * `tcp`: over the links between members. `udp`: IP multicast, at the address given to `join({ multicast })`. `log`: each
   * message is an entry of the replicated log, on the disks of a majority, and the order is `total` or `causal-total`.
   * Default `tcp`.
   */
  readonly transport?: Transport | undefined;
}

/** How messages of a channel travel. */
export type Transport = "tcp" | "udp" | "log";

/**
 * Delivers the messages of every member to every member that has the channel open. Each call of `member.channel()` returns
 * a use of its own: closing it does not affect the others.
 *
 * @typeParam T plain JSON data. Messages of other members are not checked against it.
 */
export interface Channel<T = unknown> extends AsyncIterable<ChannelMessage<T>>, AsyncDisposable {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  /**
   * Multicasts a message. Resolves when the guarantee is met: with `total` and `causal-total` the message has been
   * delivered here, in order; otherwise every member of the view has it. Waits while a reader at any member cannot keep up.
   *
   * @throws UsageError `bad-payload` if the value is not JSON, `payload-too-large`; CoordinationError `send-timeout`,
   *   `send-aborted`, `channel-full`, `channel-closed`, `instance-refused`, `member-left`, `member-failed`,
   *   `send-uncertain`. Its `phase` is `never-sent` if no member gets the message, and `uncertain` if some may have it.
   */
  send(payload: T, options?: SendOptions): Promise<Sent>;
  /**
   * Messages that are delivered here, from now on. The first reader in this process also gets earlier messages, up to 1 MiB
   * since the channel was opened. Each call is a reader of its own, and so is `for await (… of channel)`.
   *
   * @throws CoordinationError `reader-too-slow`, after the messages that were kept for it.
   */
  read(options?: ReadOptions): AsyncIterableIterator<ChannelMessage<T>>;
  /**
   * Reads messages into a state that the caller computes. The first item is `{ state }`: the state of another member at one
   * position of the order. Every message after that position follows. If no member has a state, one of the readers becomes
   * the first: it gets messages at once, and its own state becomes the state of the group. After this member was expelled
   * from the group and has entered again, another `{ state }` arrives: replace your state by it.
   *
   * @typeParam S plain JSON data of at most 16 MiB. The state of another member is not checked against it.
   * @throws UsageError `state-needs-order`, `state-in-use`; CoordinationError `state-refused`, `reader-too-slow`.
   */
  read<S>(options: StateReadOptions<S>): AsyncIterableIterator<ChannelMessage<T> | ChannelStart<S>>;
  /** The view, at once and after each change. A slow reader loses the oldest changes. */
  views(options?: ReadOptions): AsyncIterableIterator<ChannelView>;
  readonly status: ChannelStatus;
  /** Ends this use. Readers end after the messages that wait for them. Messages that wait to be sent are not sent. */
  close(): Promise<void>;
}

/** Options of `Channel.send()`. */
export interface SendOptions {
  /** How long to wait at most. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Aborting it ends the wait. The message may still be delivered, as `phase` reports. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `Channel.read()`. */
export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Options of `Channel.read()` for a reader with a state. */
export interface StateReadOptions<S = unknown> extends ReadOptions {
  /**
   * Returns the present state. Called between two messages, when the loop requests the next one, so every earlier message
   * has been applied.
   */
  readonly state: () => S;
}

/** The first item of a reader with a state. */
export interface ChannelStart<S = unknown> {
  readonly state: S;
}

/** Id and view of a message. */
export interface Sent {
  /** The same at every member, and unique. */
  readonly id: string;
  /** The number of the view that delivers it. */
  readonly view: number;
}

/** A message as it is delivered. */
export interface ChannelMessage<T = unknown> extends Sent {
  readonly from: NodeId;
  readonly payload: T;
}

/**
 * `member`: in the view. `blocked`: the group is about to change, and messages wait. `outside`: in no view, before the
 * first one or after an expulsion; the member enters by itself. `stalled`: this member knows no leader of the log, so
 * messages wait and views do not change. `left`: the member has left for good.
 */
export type ChannelState = "member" | "blocked" | "outside" | "stalled" | "left";

/** A view of the group, and the state of this member in it. */
export interface ChannelView {
  /** The last view that was installed here; null before the first. Numbers are revisions of the log: they grow, with gaps. */
  readonly view: number | null;
  /** The members of that view, ascending. */
  readonly members: readonly NodeId[];
  readonly state: ChannelState;
}

/** The state of a channel at this member. */
export interface ChannelStatus extends ChannelView {
  readonly order: Order;
  readonly transport: Transport;
  /** Messages of this process that wait to be multicast, and messages under way. */
  readonly waiting: number;
  readonly inFlight: number;
  /** Messages delivered here since the channel was opened, and the number of them that had no reader. */
  readonly delivered: number;
  readonly unread: number;
  /** Members whose readers cannot keep up, this one included: senders wait for them. */
  readonly slow: readonly NodeId[];
}
