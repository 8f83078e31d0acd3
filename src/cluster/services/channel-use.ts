/**
 * A handle for a channel: the result of one call to `member.channel()`. A handle that only sends does not have to be
 * closed.
 */
import { UsageError } from "../../core/errors.ts";
import type {
  Channel,
  ChannelMessage,
  ChannelStart,
  ChannelStatus,
  ChannelView,
  Order,
  ReadOptions,
  SendOptions,
  Sent,
  StateReadOptions,
  Transport,
} from "./channel-api.ts";
import type { ChannelReader, Read } from "./channel-reader.ts";
import { PATIENT } from "./channel-sending.ts";
import { CoordinationError } from "./coordination-error.ts";
import { callback, type Rules, requireOptions, signal } from "./known-options.ts";

/** The channel shared by all its handles. */
export interface UsedChannel {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  /** The name in error messages. */
  readonly what: string;
  readonly isClosed: boolean;
  readonly status: ChannelStatus;
  send(value: unknown, options: SendOptions, use: object): Promise<Sent>;
  /** @param state returns the program's state, if the reader has one */
  read(state?: () => unknown): ChannelReader;
  /** Iterates over the views until one of the signals is aborted. */
  views(signal: AbortSignal | undefined, closed: AbortSignal): AsyncIterableIterator<ChannelView>;
  /** Drops the unsent messages of a handle that has been closed. */
  withdraw(use: object): void;
}

/** The object that `member.channel()` returns. */
export class ChannelUse implements Channel {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  readonly #channel: UsedChannel;
  readonly #readers = new Set<ChannelReader>();
  readonly #controller = new AbortController();
  /** The same value as the controller's signal, which is slow to read. */
  #isClosed = false;

  constructor(channel: UsedChannel) {
    this.#channel = channel;
    this.name = channel.name;
    this.order = channel.order;
    this.transport = channel.transport;
  }

  send(payload: unknown, options: SendOptions = PATIENT): Promise<Sent> {
    try {
      // If the whole channel is closed, throw the channel's own error.
      if (this.#isClosed && !this.#channel.isClosed)
        throw new CoordinationError("channel-closed", "never-sent", `${this.#channel.what} is closed`);
      return this.#channel.send(payload, options, this);
    } catch (error) {
      const reason = error as Error;
      return Promise.reject(reason);
    }
  }

  read(options?: ReadOptions): AsyncIterableIterator<ChannelMessage>;
  read<S>(options: StateReadOptions<S>): AsyncIterableIterator<ChannelMessage | ChannelStart<S>>;
  read(options: ReadOptions & Partial<StateReadOptions> = {}): AsyncIterableIterator<Read> {
    requireOptions("read", options, readRules);
    const { signal: until, state } = options;
    if (state !== undefined) this.#requireOrder();
    if (this.#isClosed) return nothing();
    const reader = this.#channel.read(state);
    this.#readers.add(reader);
    return reader.claim(until, () => void this.#readers.delete(reader));
  }

  #requireOrder(): void {
    const { order } = this.#channel;
    if (order === "total" || order === "causal-total") return;
    throw new UsageError(
      "state-needs-order",
      `expected order "total" or "causal-total" for a stateful reader, got ${JSON.stringify(order)}: with other orders, members deliver messages in different orders and never share one state`,
    );
  }

  views(options: ReadOptions = {}): AsyncIterableIterator<ChannelView> {
    requireOptions("views", options, { signal });
    return this.#channel.views(options.signal, this.#controller.signal);
  }

  get status(): ChannelStatus {
    return this.#channel.status;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<ChannelMessage> {
    return this.read();
  }

  close(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isClosed = true;
    this.#controller.abort();
    for (const reader of this.#readers) reader.end();
    this.#channel.withdraw(this);
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

const readRules: Rules<ReadOptions & Partial<StateReadOptions>> = { signal, state: callback };

async function* nothing(): AsyncGenerator<never> {}
