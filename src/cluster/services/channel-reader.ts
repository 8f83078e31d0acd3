/**
 * Who reads a channel, at its own pace. What is delivered waits for it, within bounds: a reader with much unread makes the
 * senders wait, and one that takes nothing all the same is told how many messages it has missed.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import type { ChannelMessage, ChannelStart } from "./channel-api.ts";
import { valuesOf } from "./channel-text.ts";
import { CoordinationError, isOwnEnd } from "./coordination-error.ts";
import { onAbort } from "./on-abort.ts";

/** One multicast, as it was delivered here: so many messages. */
export interface Delivery {
  readonly from: NodeId;
  readonly view: number;
  /** Of the first message up to its last part, which is the place in the batch. */
  readonly id: string;
  readonly count: number;
  readonly json: string;
}

/** So much unread makes senders wait, so much is kept in any case, and so little lets them go on. */
const FULL_BYTES = 4 * 1024 * 1024;
const MOST_BYTES = 4 * FULL_BYTES;
const LOW_BYTES = FULL_BYTES / 4;
/** For readers that have not begun to read: nobody waits for it. */
const BACKLOG_BYTES = FULL_BYTES / 4;
/** What a delivery takes besides its text. */
const DELIVERY_COST_BYTES = 200;

const sizeOf = ({ json }: Delivery): number => json.length + DELIVERY_COST_BYTES;

/** A place among the deliveries: called when all before it has been read, and its reader asks for more. */
interface Mark {
  readonly reached: () => void;
}

export interface ReaderOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  readonly what: string;
  /** How long senders wait for a reader that takes nothing. */
  readonly patienceMs: number;
  /** Whether senders are to wait has changed. */
  readonly onPressure: () => void;
  readonly onEnd: () => void;
}

/** What a reader with a state gets first, and what all get. */
export type Read = ChannelMessage | ChannelStart;

export class ChannelReader implements AsyncIterableIterator<Read> {
  readonly #options: ReaderOptions;
  #deliveries: (Delivery | Mark)[] = [];
  #next = 0;
  #bytes = 0;
  /** Of the delivery that is being read: its values, and what their ids begin with. */
  #values: readonly unknown[] = [];
  #prefix = "";
  #place = 0;
  #missed = 0;
  /** What comes waits: for the state that goes before it, or for word that there is none. */
  #isHeldBack = false;
  /** How many of the deliveries the state that is to come covers. */
  #placed = 0;
  #start: ChannelStart | null = null;
  #failure: CoordinationError | null = null;
  #phase: "unclaimed" | "reading" | "ended" = "unclaimed";
  #callers: Caller[] = [];
  #forget: () => void = () => {};
  #ended: () => void = () => {};
  #patience: Timer | null = null;
  /** While senders are to wait: when somebody has asked for a message last. */
  #askedAt = 0;
  #isGivenUp = false;
  /** Senders are to wait for it. */
  isFull = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Somebody begins to read, and hears when that is over. */
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
    // Once one is missed, all that follow are, so that there is one gap and it is at the end.
    if (this.#missed > 0 || this.#bytes + bytes > most) {
      this.#missed += delivery.count;
      return;
    }
    this.#deliveries.push(delivery);
    this.#bytes += bytes;
    this.#serve();
    if (this.#bytes >= FULL_BYTES && this.#phase === "reading" && !this.#isGivenUp) this.#press(true);
  }

  /** Nothing is read until it may go on. */
  holdBack(): void {
    this.#isHeldBack = true;
  }

  /** The state that is to come covers all deliveries so far. They are kept in case it does not come. */
  place(): void {
    this.#isHeldBack = true;
    if (this.#missed > 0) {
      this.#empty(); // They have a gap already, so only the state is of use.
      this.#press(false);
    }
    this.#placed = this.#deliveries.length;
  }

  /** @param start the state, which the reader gets before deliveries since `place()`; null: it gets all waiting deliveries. */
  goOn(start: ChannelStart | null = null): void {
    this.#start = start ?? this.#start;
    this.#isHeldBack = false;
    if (start !== null) this.#dropPlaced();
    this.#serve();
  }

  mark(reached: () => void): void {
    if (this.#phase === "ended" || this.#missed > 0) return; // It has not had all that came before.
    this.#deliveries.push({ reached });
    this.#serve();
  }

  /** Ends it with an error, which its program gets when it asks next. */
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

  /** The member ends. What waits can still be read; after a failure the reader rejects then. */
  close(reason: CoordinationError): void {
    if (this.#phase === "ended" || isOwnEnd(reason)) return this.end();
    const [first] = this.#callers.splice(0, 1);
    if (first === undefined) this.#failure = reason;
    else first.reject(reason);
    this.end();
  }

  /** No more will come. What waits can still be read. */
  end(): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#forget();
    this.#press(false);
    for (const { resolve } of this.#callers.splice(0)) resolve(DONE);
    this.#options.onEnd();
    this.#ended();
  }

  /** How many messages it has not had. */
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

  /** Looks into the next delivery when all of the one before has been read. */
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

  /** A delivery has been read to its end. */
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

  /** If it has taken nothing for too long, nobody waits for it any more, until it has caught up. */
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
    const text = `the reader of ${this.#options.what} was too slow: it has missed ${this.#missed} messages`;
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
