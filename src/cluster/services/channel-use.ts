/** One use of a channel, as one call of `member.channel()` gives it. Who only sends leaves nothing behind, closed or not. */
import type {
  Channel,
  ChannelMessage,
  ChannelStatus,
  ChannelView,
  Order,
  ReadOptions,
  SendOptions,
  Sent,
  Transport,
} from "./channel-api.ts";
import type { ChannelReader } from "./channel-reader.ts";
import { PATIENT } from "./channel-sending.ts";
import { CoordinationError } from "./coordination-error.ts";
import { requireOptions, signal } from "./known-options.ts";

/** The channel, as all its uses see it. */
export interface UsedChannel {
  readonly name: string;
  readonly order: Order;
  readonly reliable: boolean;
  readonly transport: Transport;
  /** In an error's words. */
  readonly what: string;
  readonly isClosed: boolean;
  readonly status: ChannelStatus;
  send(value: unknown, options: SendOptions, use: object): Promise<Sent>;
  read(): ChannelReader;
  /** Until the signal is aborted, or `closed` is. */
  views(signal: AbortSignal | undefined, closed: AbortSignal): AsyncIterableIterator<ChannelView>;
  /** That use is over: what it has not sent yet is not sent. */
  withdraw(use: object): void;
}

export class ChannelUse implements Channel {
  readonly name: string;
  readonly order: Order;
  readonly reliable: boolean;
  readonly transport: Transport;
  readonly #channel: UsedChannel;
  readonly #readers = new Set<ChannelReader>();
  readonly #controller = new AbortController();
  /** As the controller's signal says, which takes long to ask. */
  #isClosed = false;

  constructor(channel: UsedChannel) {
    this.#channel = channel;
    this.name = channel.name;
    this.order = channel.order;
    this.reliable = channel.reliable;
    this.transport = channel.transport;
  }

  send(payload: unknown, options: SendOptions = PATIENT): Promise<Sent> {
    try {
      // If the whole channel is closed, it says why itself.
      if (this.#isClosed && !this.#channel.isClosed)
        throw new CoordinationError("channel-closed", "never-sent", `${this.#channel.what} is closed`);
      return this.#channel.send(payload, options, this);
    } catch (error) {
      const reason = error as Error;
      return Promise.reject(reason);
    }
  }

  read(options: ReadOptions = {}): AsyncIterableIterator<ChannelMessage> {
    requireOptions("read", options, { signal });
    if (this.#isClosed) return nothing();
    const reader = this.#channel.read();
    this.#readers.add(reader);
    return reader.claim(options.signal, () => void this.#readers.delete(reader));
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

async function* nothing(): AsyncGenerator<never> {}
