/**
 * The state of a channel in this process: its sends and reads, and the state of the group. While the group changes, no
 * messages are passed to the algorithm, so messages that are still queued here have certainly not been sent.
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

/** The multicast that a channel uses. */
export interface ChannelEngine {
  readonly platform: Pick<Platform, "clock" | "timers" | "random">;
  readonly name: string;
  readonly order: Order;
  readonly transport: Transport;
  readonly self: NodeId;
  readonly maxWaiters: number;
  /** The size limits for one multicast. */
  readonly bounds: Bounds;
  takes(command: string): boolean;
  command(command: Tagged): void;
  /** Whether the links have space, for all given members that are reachable. */
  hasRoom(members: readonly NodeId[]): boolean;
  /** Reports to the other members whether this member's readers of the channel keep up. */
  sendPressure(isFull: boolean): void;
}

/** How long senders wait for a reader that does not read. */
const PATIENCE_MS = 10_000;
/** How long a leaving member waits for its messages to be settled. */
const LAST_SENDS_MS = 500;
/** The interval at which full links are checked for space. */
const RETRY_MS = 5;
/** The maximum number of view changes that can be queued for a reader. */
const MAX_VIEWS = 1_000;

/** A channel's sends and reads in this process. */
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
  /** The number of handles that this program has open. */
  #uses = 0;
  /**
   * Messages delivered before the first reader. Null once there is a reader, and whenever no program uses the channel.
   */
  #backlog: ChannelReader | null;
  #delivered = 0;
  #unread = 0;
  #closed: CoordinationError | null = null;
  /** The timer for the next check whether the links have space. */
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
      // One for the message and, with a total order, one for its position in the order.
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

  /** Called when the multicast has started. */
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

  /** Opens a handle for the channel. */
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

  /** Called when another member has reported whether its readers keep up. */
  onPressure(from: NodeId, isFull: boolean): void {
    this.#pressure.receive(from, isFull);
  }

  /** Waits briefly until all messages are settled, and then leaves the group. Callers may stop waiting for this. */
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

  /** Called when the multicast will deliver no more messages. */
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

  // The handles call the following methods.

  send(value: unknown, options: SendOptions, use: object): Promise<Sent> {
    return this.#sending.send(value, options, use);
  }

  /** Opens a reader. It gets messages from now on, and the first reader also gets retained earlier messages. */
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
   * The slow members of the view, including this one. A program that awaits a send inside its read loop waits for its
   * own reader, until senders stop waiting for that reader.
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

  /** Makes senders wait while any of this member's readers has too many unread bytes. */
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
    // This member is not in the view. Its messages are sent again once it has entered the view.
    if (!members.includes(this.#engine.self)) return this.#stand("outside");
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
