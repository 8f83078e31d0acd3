/**
 * A reader of a channel, which reads at its own pace. Deliveries are queued for it, up to a limit. A reader with many
 * unread messages makes senders wait. If it still does not read, it misses messages and gets an error with their
 * number.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import type { ChannelMessage, ChannelStart } from "./channel-api.ts";
import { valuesOf } from "./channel-text.ts";
import { CoordinationError, isOwnEnd } from "./coordination-error.ts";
import { onAbort } from "./on-abort.ts";

/** A multicast delivered at this member: a batch of messages. */
export interface Delivery {
  readonly from: NodeId;
  readonly view: number;
  /** The common prefix of the messages' ids. A message's id is this prefix followed by its index in the batch. */
  readonly id: string;
  readonly count: number;
  readonly json: string;
}

/** The numbers of unread bytes at which senders wait, messages are dropped, and senders resume, respectively. */
const FULL_BYTES = 4 * 1024 * 1024;
const MOST_BYTES = 4 * FULL_BYTES;
const LOW_BYTES = FULL_BYTES / 4;
/** The limit for readers that have not begun to read. Senders do not wait for them. */
const BACKLOG_BYTES = FULL_BYTES / 4;
/** The overhead of a delivery, in addition to its text. */
const DELIVERY_COST_BYTES = 200;

const sizeOf = ({ json }: Delivery): number => json.length + DELIVERY_COST_BYTES;

/**
 * A position among the deliveries. `reached` is called once the reader has taken everything before this position and
 * requests more.
 */
interface Mark {
  readonly reached: () => void;
}

export interface ReaderOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly what: string;
  /** How long senders wait for a reader that does not read. */
  readonly patienceMs: number;
  /** Called when senders must begin or stop waiting. */
  readonly onPressure: () => void;
  readonly onEnd: () => void;
}

/** An item that a reader yields: a message, or the state, which a reader with state gets first. */
export type Read = ChannelMessage | ChannelStart;

/** One iteration over a channel's deliveries. */
export class ChannelReader implements AsyncIterableIterator<Read> {
  readonly #options: ReaderOptions;
  #deliveries: (Delivery | Mark)[] = [];
  #next = 0;
  #bytes = 0;
  /** The delivery being read: its values, and the prefix of their ids. */
  #values: readonly unknown[] = [];
  #prefix = "";
  #place = 0;
  #missed = 0;
  /** Whether deliveries are held back until the state arrives, or until it is known that there is none. */
  #isHeldBack = false;
  /** The number of deliveries that the awaited state covers. */
  #placed = 0;
  #start: ChannelStart | null = null;
  #failure: CoordinationError | null = null;
  #phase: "unclaimed" | "reading" | "ended" = "unclaimed";
  #callers: Caller[] = [];
  #forget: () => void = () => {};
  #ended: () => void = () => {};
  #patience: Timer | null = null;
  /** When a message was last requested while senders were waiting. */
  #askedAt = 0;
  #isGivenUp = false;
  /** Whether senders must wait for this reader. */
  isFull = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /**
   * Starts the reader.
   * @param ended called when the reader has ended
   */
  claim(signal: AbortSignal | undefined, ended: () => void): this {
    if (this.#phase === "ended") ended();
    else {
      this.#phase = "reading";
      this.#ended = ended;
      this.#forget = onAbort(signal, () => void this.return());
    }
    if (signal?.aborted === true) void this.return();
    return this;
  }

  take(delivery: Delivery): void {
    if (this.#phase === "ended") return;
    const bytes = sizeOf(delivery);
    const most = this.#phase === "unclaimed" ? BACKLOG_BYTES : MOST_BYTES;
    // Once a message is missed, drop all later ones too, so that there is only one gap, at the end.
    if (this.#missed > 0 || this.#bytes + bytes > most) {
      this.#missed += delivery.count;
      return;
    }
    this.#deliveries.push(delivery);
    this.#bytes += bytes;
    this.#serve();
    if (this.#bytes >= FULL_BYTES && this.#phase === "reading" && !this.#isGivenUp) this.#press(true);
  }

  /** Holds deliveries back until `goOn()` is called. */
  holdBack(): void {
    this.#isHeldBack = true;
  }

  /**
   * Marks all deliveries so far as covered by the awaited state. They are retained in case the state does not arrive.
   */
  place(): void {
    this.#isHeldBack = true;
    if (this.#missed > 0) {
      this.#empty(); // The deliveries already have a gap, so only the state is useful.
      this.#press(false);
    }
    this.#placed = this.#deliveries.length;
  }

  /**
   * Resumes delivery.
   * @param start the state, which the reader gets before the deliveries that followed `place()`. If null, the reader
   *   gets all queued deliveries.
   */
  goOn(start: ChannelStart | null = null): void {
    this.#start = start ?? this.#start;
    this.#isHeldBack = false;
    if (start !== null) this.#dropPlaced();
    this.#serve();
  }

  mark(reached: () => void): void {
    if (this.#phase === "ended" || this.#missed > 0) return; // The reader has missed earlier messages.
    this.#deliveries.push({ reached });
    this.#serve();
  }

  /** Ends the reader with an error, which its next call throws. */
  fail(error: CoordinationError): void {
    if (this.#phase === "ended") return;
    this.#empty();
    const [first] = this.#callers.splice(0, 1);
    if (first === undefined) this.#failure = error;
    else first.reject(error);
    this.end();
  }

  next(): Promise<IteratorResult<Read>> {
    if (this.isFull) this.#askedAt = this.#options.platform.clock.now();
    if (this.#hasNext()) return Promise.resolve(this.#take());
    if (this.#failure !== null) return this.#rejectOnce(this.#failure);
    if (this.#missed > 0 && !this.#isHeldBack) return this.#refuse();
    if (this.#phase === "ended") return Promise.resolve(DONE);
    return new Promise((resolve, reject) => this.#callers.push({ resolve, reject }));
  }

  return(): Promise<IteratorResult<Read>> {
    this.#empty();
    this.#failure = null;
    this.end();
    return Promise.resolve(DONE);
  }

  /**
   * Closes the reader because the member has ended. Queued messages can still be read. If the member failed, the reader
   * then rejects.
   */
  close(reason: CoordinationError): void {
    if (this.#phase === "ended" || isOwnEnd(reason)) return this.end();
    const [first] = this.#callers.splice(0, 1);
    if (first === undefined) this.#failure = reason;
    else first.reject(reason);
    this.end();
  }

  /** Ends the reader. Queued messages can still be read. */
  end(): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#forget();
    this.#press(false);
    for (const { resolve } of this.#callers.splice(0)) resolve(DONE);
    this.#options.onEnd();
    this.#ended();
  }

  /** The number of unread messages. */
  get unread(): number {
    const kept = this.#deliveries.slice(this.#next).reduce((sum, item) => sum + ("count" in item ? item.count : 0), 0);
    return kept - this.#place + this.#missed;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #dropPlaced(): void {
    const later = this.#deliveries.slice(this.#placed);
    this.#deliveries = later;
    this.#next = 0;
    this.#values = [];
    this.#place = 0;
    this.#bytes = later.reduce((sum, item) => sum + ("count" in item ? sizeOf(item) : 0), 0);
    this.#placed = 0;
    if (this.#bytes <= LOW_BYTES) this.#press(false);
  }

  #empty(): void {
    this.#deliveries = [];
    this.#next = 0;
    this.#bytes = 0;
    this.#values = [];
    this.#place = 0;
    this.#missed = 0;
    this.#start = null;
  }

  #serve(): void {
    while (this.#callers.length > 0 && this.#hasNext()) this.#callers.shift()?.resolve(this.#take());
  }

  /** Whether another message is ready. Parses the next delivery if the previous one has been read. */
  #hasNext(): boolean {
    if (this.#isHeldBack) return false;
    if (this.#start !== null) return true;
    while (this.#place === this.#values.length && this.#next < this.#deliveries.length) {
      const item = this.#deliveries[this.#next] as Delivery | Mark;
      if ("reached" in item) {
        this.#passed();
        item.reached();
        continue;
      }
      this.#values = valuesOf(item);
      this.#prefix = `${item.id}.`;
      if (this.#values.length === 0) this.#taken();
    }
    return this.#place < this.#values.length;
  }

  #take(): IteratorResult<Read> {
    const start = this.#start;
    if (start !== null) {
      this.#start = null;
      return { done: false, value: start };
    }
    const { from, view } = this.#deliveries[this.#next] as Delivery;
    const value = { from, payload: this.#values[this.#place], id: `${this.#prefix}${this.#place}`, view };
    this.#place += 1;
    if (this.#place === this.#values.length) this.#taken();
    return { done: false, value };
  }

  #taken(): void {
    this.#bytes -= sizeOf(this.#deliveries[this.#next] as Delivery);
    this.#passed();
    if (this.#bytes > LOW_BYTES) return;
    this.#isGivenUp = false;
    this.#press(false);
  }

  #passed(): void {
    this.#next += 1;
    this.#values = [];
    this.#place = 0;
    if (this.#next * 2 < this.#deliveries.length) return;
    this.#deliveries.splice(0, this.#next);
    this.#next = 0;
  }

  #press(isFull: boolean): void {
    if (this.isFull === isFull) return;
    this.isFull = isFull;
    const { platform, patienceMs } = this.#options;
    platform.timers.cancel(this.#patience);
    this.#askedAt = platform.clock.now();
    if (isFull) this.#beginPatience(patienceMs);
    this.#options.onPressure();
  }

  #beginPatience(forMs: number): void {
    this.#patience = this.#options.platform.timers.after(forMs, () => this.#giveUpIfIdle()).unref();
  }

  /**
   * If this reader has not read for too long, makes senders stop waiting for it. They wait for it again once it has
   * caught up.
   */
  #giveUpIfIdle(): void {
    const { platform, patienceMs } = this.#options;
    const leftMs = this.#askedAt + patienceMs - platform.clock.now();
    if (leftMs > 0) return this.#beginPatience(leftMs);
    this.#isGivenUp = true;
    this.#press(false);
  }

  #rejectOnce(error: CoordinationError): Promise<never> {
    this.#failure = null;
    return Promise.reject(error);
  }

  #refuse(): Promise<never> {
    const text = `the reader of ${this.#options.what} was too slow: it missed ${this.#missed} messages`;
    this.#missed = 0;
    this.end();
    return Promise.reject(new CoordinationError("reader-too-slow", "missed", text));
  }
}

interface Caller {
  readonly resolve: (result: IteratorResult<Read>) => void;
  readonly reject: (error: CoordinationError) => void;
}

const DONE = { done: true, value: undefined } as const;
