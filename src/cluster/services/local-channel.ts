/**
 * The channel for this process: its sends and reads, and the state of the group. While the group changes, it gives the
 * algorithm no messages, so messages that wait here have certainly not been sent.
 */
import { InvariantViolation } from "../../core/errors.ts";
import type { NodeId, Tagged } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import { sleep } from "../../runtime/platform/sleep.ts";
import type {
  Channel,
  ChannelState,
  ChannelStatus,
  ChannelView,
  Order,
  SendOptions,
  Sent,
  Transport,
} from "./channel-api.ts";
import { ChannelReader } from "./channel-reader.ts";
import { Sending } from "./channel-sending.ts";
import { ChannelState as KeptState } from "./channel-state.ts";
import { type Bounds, readBatch } from "./channel-text.ts";
import { ChannelUse, type UsedChannel } from "./channel-use.ts";
import type { CoordinationError } from "./coordination-error.ts";
import { ReaderPressure } from "./reader-pressure.ts";
import { type Feed, feed } from "./reading.ts";
import type { AlgorithmEvent } from "./wired.ts";

/** The multicast below a channel. */
export interface ChannelEngine {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  readonly self: NodeId;
  readonly maxWaiters: number;
  /** The limits of one multicast. */
  readonly bounds: Bounds;
  takes(command: string): boolean;
  command(command: Tagged): void;
  /** Whether the links to these members have space, as far as they are reachable. */
  hasRoom(members: readonly NodeId[]): boolean;
  /** Tells the other members whether readers of this channel keep up here. */
  sendPressure(isFull: boolean): void;
}

/** How long senders wait for a reader that takes nothing. */
const PATIENCE_MS = 10_000;
/** How long a leaving member waits for its messages to be settled. */
const LAST_SENDS_MS = 500;
/** How soon to check again whether full links have space. */
const RETRY_MS = 5;
/** Changes of the group that wait for their readers. */
const MAX_VIEWS = 1_000;

export class LocalChannel implements UsedChannel {
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  readonly #engine: ChannelEngine;
  readonly #sending: Sending;
  readonly #pressure: ReaderPressure;
  readonly #kept: KeptState;
  readonly #readers = new Set<ChannelReader>();
  readonly #views: Feed<ChannelView> = feed((waiting, view) => [...waiting.slice(1 - MAX_VIEWS), view]);
  #view: number | null = null;
  #members: readonly NodeId[] = [];
  #standing: Exclude<ChannelState, "stalled"> = "outside";
  #isStalled = false;
  #said: ChannelView | null = null;
  /** How many uses this program has open. */
  #uses = 0;
  /** Messages before the first reader; null once there is a reader, and while no program uses the channel. */
  #backlog: ChannelReader | null;
  #delivered = 0;
  #unread = 0;
  #closed: CoordinationError | null = null;
  /** Checks again whether the links have space. */
  #retry: Timer | null = null;
  #onLeft: (() => void) | null = null;

  constructor(engine: ChannelEngine) {
    const { name, order, transport, platform, maxWaiters, bounds } = engine;
    this.#engine = engine;
    this.name = name;
    this.order = order;
    this.transport = transport;
    this.#pressure = new ReaderPressure({
      platform,
      send: (isFull) => engine.sendPressure(isFull),
      onRelief: () => this.#sending.wake(),
    });
    this.#backlog = this.#reader();
    const isOrdered = order === "total" || order === "causal-total";
    this.#sending = new Sending({
      platform,
      what: this.what,
      maxWaiting: maxWaiters,
      bounds,
      settled: isOrdered ? "delivered" : "stable",
      // The message, and with an agreed order the agreed number.
      carried: transport === "log" ? null : isOrdered ? 2 : 1,
      mayHand: () => this.#mayHand(),
      hand: (payload) => engine.command({ type: "send", payload } as Tagged),
    });
    this.#kept = new KeptState({
      what: this.what,
      partBytes: () => bounds.payloadBytes,
      command: (command) => {
        if (!this.isClosed && engine.takes(command.type)) engine.command(command);
      },
    });
  }

  /** The members of the view. */
  get members(): readonly NodeId[] {
    return this.#members;
  }

  get what(): string {
    return `the channel "${this.name}"`;
  }

  get isClosed(): boolean {
    return this.#closed !== null;
  }

  get isUsed(): boolean {
    const { waiting, inFlight } = this.#sending;
    const isRead = this.#backlog !== null || this.#readers.size > 0 || this.#views.isRead;
    return this.#uses > 0 || isRead || waiting + inFlight > 0;
  }

  /** The multicast has started. */
  begin(): void {
    this.#kept.begin();
  }

  get held() {
    return { token: null, isHeld: false, waiting: this.#sending.waiting };
  }

  get status(): ChannelStatus {
    const { order, transport } = this;
    const { waiting, inFlight } = this.#sending;
    const counts = { waiting, inFlight, delivered: this.#delivered, unread: this.#unread };
    return { ...this.#now, order, transport, ...counts, slow: this.#slow };
  }

  /** A program begins to use it. */
  use<T>(): Channel<T> {
    this.#uses += 1;
    if (this.#uses === 1) this.#backlog ??= this.#reader();
    return new ChannelUse(this) as Channel<unknown> as Channel<T>;
  }

  onEvent(event: AlgorithmEvent): void {
    switch (event.type) {
      case "delivered":
        return this.#deliver(event as never);
      case "stable":
        return this.#sending.stable(Number(event.count));
      case "blocked":
        return this.#stand("blocked");
      case "installed":
        return this.#install(event as never);
      case "ejected":
        this.#sending.ejected();
        return this.#stand("outside");
      case "stalled":
      case "resumed":
        this.#isStalled = event.type === "stalled";
        return this.#changed();
      case "refused":
        throw new InvariantViolation("window-exceeded", `${this.what}: the layer below had no room for a multicast`);
      case "left":
        this.#onLeft?.();
        return this.#stand("left");
      default:
        return this.#kept.onEvent(event);
    }
  }

  /** Another member reports whether its readers keep up. */
  onPressure(from: NodeId, isFull: boolean): void {
    this.#pressure.receive(from, isFull);
  }

  /** Settles sent messages, and announces to the others that this member leaves. Callers may stop waiting for it. */
  async leave(reason: CoordinationError): Promise<void> {
    this.#sending.stop(reason);
    await Promise.race([this.#sending.idle(), sleep(this.#engine.platform.timers, LAST_SENDS_MS, { ref: false })]);
    if (this.#closed !== null || !this.#engine.takes("leave")) return;
    const left = new Promise<void>((resolve) => {
      this.#onLeft = resolve;
    });
    this.#engine.command({ type: "leave" });
    await left;
  }

  /** The multicast delivers no more. */
  stop(): void {
    this.#pressure.stop();
    this.#engine.platform.timers.cancel(this.#retry);
    this.#retry = null;
  }

  close(reason: CoordinationError): void {
    this.#closed = reason;
    this.#sending.close(reason);
    this.stop();
    this.#stand("left");
    this.#views.close(reason);
    for (const reader of this.#readers) reader.close(reason);
  }

  // Called by the uses.

  send(value: unknown, options: SendOptions, use: object): Promise<Sent> {
    return this.#sending.send(value, options, use);
  }

  /** From now on; the first reader also gets the retained earlier messages. */
  read(state?: () => unknown): ChannelReader {
    const begin = (): ChannelReader => {
      const reader = this.#backlog ?? this.#reader();
      this.#backlog = null;
      return reader;
    };
    const reader = state === undefined ? begin() : this.#kept.open(begin, state);
    if (this.#closed !== null) reader.close(this.#closed);
    return reader;
  }

  views(signal: AbortSignal | undefined, closed: AbortSignal): AsyncIterableIterator<ChannelView> {
    return this.#views.read(signal, this.#now, closed);
  }

  withdraw(use: object): void {
    this.#sending.withdraw(use);
    this.#uses -= 1;
    this.#dropUnused();
  }

  get #state(): ChannelState {
    return this.#isStalled && this.#standing !== "left" ? "stalled" : this.#standing;
  }

  #mayHand(): boolean {
    if (this.#state !== "member" || this.#slow.length > 0) return false;
    if (this.#engine.hasRoom(this.#members)) return true;
    this.#retry ??= this.#engine.platform.timers.after(RETRY_MS, () => {
      this.#retry = null;
      this.#sending.wake();
    });
    return false;
  }

  get #now(): ChannelView {
    return { view: this.#view, members: this.#members, state: this.#state };
  }

  /**
   * Includes this member. A program that awaits a send in its read loop waits for itself, until senders stop waiting for
   * its reader.
   */
  get #slow(): readonly NodeId[] {
    const slow = this.#pressure.slowAmong(this.#members);
    return this.#pressure.isFull ? [...slow, this.#engine.self].sort((a, b) => a - b) : slow;
  }

  #deliver({ from, payload, id }: { from: NodeId; payload: string; id: string }): void {
    const view = this.#view ?? 0;
    const { number, count, json } = readBatch(payload);
    if (count === 0) return;
    const sent = { id: `${view}.${id}`, view };
    this.#delivered += count;
    const delivery = { from, ...sent, count, json };
    for (const reader of this.#readers) reader.take(delivery);
    if (this.#readers.size === 0) this.#unread += count;
    if (from === this.#engine.self) this.#sending.delivered(number, sent);
  }

  #reader(): ChannelReader {
    const reader = new ChannelReader({
      platform: this.#engine.platform,
      what: this.what,
      patienceMs: PATIENCE_MS,
      onPressure: () => this.#lookAtReaders(),
      onEnd: () => {
        this.#readers.delete(reader);
        this.#kept.ended(reader);
      },
    });
    this.#readers.add(reader);
    return reader;
  }

  /** Senders wait while any reader here has too many unread bytes. */
  #lookAtReaders(): void {
    this.#pressure.set([...this.#readers].some((reader) => reader.isFull));
  }

  #dropUnused(): void {
    if (this.#uses > 0 || this.#backlog === null) return;
    this.#unread += this.#backlog.unread;
    void this.#backlog.return();
    this.#backlog = null;
  }

  #install({ view, members }: { view: number; members: readonly NodeId[] }): void {
    this.#view = view;
    this.#members = Object.freeze([...members]);
    this.#isStalled = false;
    if (!members.includes(this.#engine.self)) return this.#stand("outside"); // Its messages are sent again once it is back.
    this.#sending.installed();
    this.#stand("member");
  }

  #stand(standing: Exclude<ChannelState, "stalled">): void {
    this.#standing = standing;
    this.#changed();
  }

  #changed(): void {
    const now = this.#now;
    const said = this.#said;
    if (said !== null && said.state === now.state && said.view === now.view) return;
    this.#said = now;
    this.#views.publish(now);
    this.#sending.wake();
  }
}
