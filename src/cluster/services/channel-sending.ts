/**
 * The messages that this process sends on a channel, and their outcomes. Messages are gathered while earlier ones are
 * in flight, so that one multicast carries many of them. Under load, each message therefore costs fewer multicasts.
 */
import { MAX_WAIT_MS } from "../../runtime/longest-wait.ts";
import type { Platform } from "../../runtime/platform/platform.ts";
import type { SendOptions, Sent } from "./channel-api.ts";
import { type Bounds, batchText, payloadOf } from "./channel-text.ts";
import { type CoordinationCode, CoordinationError, type Phase } from "./coordination-error.ts";
import { duration, type Rules, requireOptions, signal } from "./known-options.ts";
import { onAbort } from "./on-abort.ts";

export interface SendingOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  /** The name in error messages, such as `the channel "room"`. */
  readonly what: string;
  readonly maxWaiting: number;
  readonly bounds: Bounds;
  /**
   * When a message counts as settled: when it has been delivered at this member, or when every member of the view has
   * it.
   */
  readonly settled: "delivered" | "stable";
  /**
   * The number of multicasts that the carrier (the layer below) makes per multicast of this channel. Null if the
   * carrier does not report which of its multicasts are stable.
   */
  readonly carried: number | null;
  /** Whether the algorithm can accept a message now. */
  mayHand(): boolean;
  hand(text: string): void;
}

/** The maximum total size of messages that are waiting to be sent. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/**
 * Once `FEW` multicasts are in flight, messages are gathered into full multicasts. At most `MANY` of these are in
 * flight, with at most `MOST_BYTES`.
 */
const FEW = 8;
const MANY = 64;
const MOST_BYTES = 2 * 1024 * 1024;
/**
 * The maximum number of unstable carrier multicasts. It is below the carrier's window, so no multicast has to wait
 * there.
 */
const MOST_UNSTABLE = 192;

/** The handle through which a message was sent. */
type Owner = object;

interface Message {
  /** The message as JSON. Emptied once the message is sent. */
  text: string;
  readonly bytes: number;
  readonly owner: Owner;
  readonly resolve: (sent: Sent) => void;
  readonly reject: (error: CoordinationError) => void;
  forget: () => void;
  phase: "waiting" | "sent" | "settled";
}

/** A multicast in flight. */
interface Flight {
  readonly messages: readonly Message[];
  readonly bytes: number;
  /** The id and view of the multicast, once it has been delivered at this member. */
  sent: Sent | null;
  /** The position of the multicast among this member's multicasts in the view, counted from 1. */
  place: number;
}

/** The queue of messages to send, and the messages whose outcome is open. */
export class Sending {
  readonly #options: SendingOptions;
  #waiting: Message[] = [];
  #next = 0;
  /** The number of abandoned messages in `#waiting`. */
  #abandoned = 0;
  #waitingBytes = 0;
  #number = 0;
  /** Multicasts in flight, keyed by number, in sending order. */
  readonly #flights = new Map<number, Flight>();
  #flightBytes = 0;
  #inFlight = 0;
  /**
   * For this member in this view: the number of multicasts that have been delivered here, that have been given to the
   * algorithm, and that are stable in the carrier.
   */
  #places = 0;
  #handed = 0;
  #stable = 0;
  #isScheduled = false;
  /** Why no more messages are accepted. Null as long as they are. */
  #refusal: CoordinationError | null = null;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  constructor(options: SendingOptions) {
    this.#options = options;
  }

  /** The number of messages that are waiting to be multicast. */
  waiting = 0;

  get inFlight(): number {
    return this.#inFlight;
  }

  send(value: unknown, options: SendOptions, owner: Owner): Promise<Sent> {
    if (options !== PATIENT) requireOptions("send", options, sendRules);
    const { timeoutMs, signal } = options;
    const { text, bytes } = payloadOf(value, this.#options.bounds.payloadBytes);
    if (this.#refusal !== null) throw this.#error(this.#refusal.code, "never-sent", this.#refusal.message);
    if (signal?.aborted === true) throw this.#aborted(signal, "never-sent");
    this.#requireRoom(bytes);
    return new Promise((resolve, reject) => {
      const message: Message = { text, bytes, owner, resolve, reject, forget: nothing, phase: "waiting" };
      if (timeoutMs !== undefined || signal !== undefined) this.#watch(message, timeoutMs, signal);
      this.#waiting.push(message);
      this.waiting += 1;
      this.#waitingBytes += bytes;
      this.wake();
    });
  }

  /** Called when the algorithm may accept messages again. */
  wake(): void {
    if (this.#isScheduled || this.waiting === 0) return;
    this.#isScheduled = true;
    const hand = (): void => this.#handAll();
    // A single message need not wait for others.
    if (this.#flights.size === 0) queueMicrotask(hand);
    else this.#options.platform.timers.soon(hand);
  }

  /** Called when one of this process's multicasts has been delivered at this member. */
  delivered(number: number, sent: Sent): void {
    this.#places += 1;
    const flight = this.#flights.get(number);
    if (flight === undefined) return;
    flight.sent = sent;
    flight.place = this.#places;
    if (this.#options.settled === "delivered") this.#settle(number, flight);
  }

  /** Called when every member of the view has the first `count` multicasts that this member's carrier made. */
  stable(count: number): void {
    this.#stable = count;
    this.wake();
    if (this.#options.settled !== "stable") return;
    for (const [number, flight] of this.#flights) {
      if (flight.sent === null || flight.place > count) return;
      this.#settle(number, flight);
    }
  }

  /**
   * Called when a new view begins. Messages delivered in earlier views were delivered at all members that are also in
   * this one.
   */
  installed(): void {
    this.#places = 0;
    this.#stable = 0;
    for (const [number, flight] of this.#flights) if (flight.sent !== null) this.#settle(number, flight);
    this.#handed = this.#flights.size; // The previous view did not deliver them.
  }

  /**
   * Called when this member was expelled. Other members may deliver the multicasts in flight, but this one does not.
   */
  ejected(): void {
    // The member is leaving.
    if (this.#refusal !== null) return this.#loseFlights(this.#refusal.code, this.#refusal.message);
    const text = `this member was expelled from the group of ${this.#options.what}: other members may have delivered the message`;
    this.#loseFlights("send-uncertain", text);
  }

  /** Drops the unsent messages of a handle that has been closed. */
  withdraw(owner: Owner): void {
    const text = `${this.#options.what} was closed before the message was sent`;
    this.#refuseWaiting("channel-closed", text, (message) => message.owner === owner);
  }

  /** Stops accepting messages. Messages accepted earlier are still sent. */
  stop(reason: CoordinationError): void {
    this.#refusal ??= reason;
  }

  /** Resolves once no message is waiting or in flight. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  close(reason: CoordinationError): void {
    this.stop(reason);
    this.#isClosed = true;
    const { code, message: text } = reason;
    this.#refuseWaiting(code, text, () => true);
    this.#loseFlights(code, text);
  }

  get #isIdle(): boolean {
    return this.waiting === 0 && this.#flights.size === 0;
  }

  #requireRoom(bytes: number): void {
    const { maxWaiting, what } = this.#options;
    if (this.waiting < maxWaiting && this.#waitingBytes + bytes <= MAX_WAITING_BYTES) return;
    const text = `${this.waiting} messages of ${this.#waitingBytes} bytes are waiting to be sent on ${what}, which is the maximum: await some of your sends`;
    throw this.#error("channel-full", "never-sent", text);
  }

  #watch(message: Message, timeoutMs: number | undefined, signal: AbortSignal | undefined): void {
    const phase = (): Phase => (message.phase === "waiting" ? "never-sent" : "uncertain");
    const late = (): void => {
      const text = `${this.#options.what}: a message was not settled within ${timeoutMs} ms, and ${outlook(phase())}`;
      this.#refuse(message, this.#error("send-timeout", phase(), text));
    };
    const isTimed = timeoutMs !== undefined && timeoutMs <= MAX_WAIT_MS;
    const { timers } = this.#options.platform;
    const timer = isTimed ? timers.after(timeoutMs, late) : null;
    const abort = (): void => this.#refuse(message, this.#aborted(signal as AbortSignal, phase()));
    const forget = onAbort(signal, abort);
    message.forget = () => {
      timers.cancel(timer);
      forget();
    };
  }

  #handAll(): void {
    this.#isScheduled = false;
    while (this.waiting > 0 && !this.#isClosed && this.#hasWindow() && this.#options.mayHand()) this.#handOne();
  }

  #hasWindow(): boolean {
    const { carried, bounds } = this.#options;
    if (carried !== null && this.#handed * carried - this.#stable >= MOST_UNSTABLE) return false;
    if (this.#flights.size < FEW) return true;
    const isFull = this.#waitingBytes >= bounds.batchBytes;
    return isFull && this.#flights.size < MANY && this.#flightBytes < MOST_BYTES;
  }

  #handOne(): void {
    const messages: Message[] = [];
    const texts: string[] = [];
    let bytes = 0;
    for (; this.#next < this.#waiting.length; this.#next += 1) {
      const message = this.#waiting[this.#next] as Message;
      if (message.phase !== "waiting") {
        this.#abandoned -= 1;
        continue;
      }
      const cost = message.bytes + 1; // The extra byte is for the comma.
      if (bytes > 0 && bytes + cost > this.#options.bounds.batchBytes) break;
      bytes += cost;
      message.phase = "sent";
      messages.push(message);
      texts.push(message.text);
      // Free the text. Otherwise, garbage collection would have to move the texts of all messages in flight.
      message.text = "";
      this.waiting -= 1;
      this.#waitingBytes -= message.bytes;
    }
    this.#compact();
    this.#number += 1;
    this.#handed += 1;
    this.#flights.set(this.#number, { messages, bytes, sent: null, place: 0 });
    this.#flightBytes += bytes;
    this.#inFlight += messages.length;
    this.#options.hand(batchText(this.#number, texts));
  }

  /** Drops sent messages once they outnumber the waiting ones. */
  #compact(): void {
    if (this.#next * 2 < this.#waiting.length) return;
    this.#waiting.splice(0, this.#next);
    this.#next = 0;
  }

  #settle(number: number, flight: Flight): void {
    const { id, view } = flight.sent as Sent;
    const prefix = `${id}.`;
    this.#land(number, flight);
    flight.messages.forEach((message, place) => {
      if (message.phase === "settled") return;
      message.phase = "settled";
      message.forget();
      message.resolve({ id: `${prefix}${place}`, view });
    });
    this.#look();
  }

  /** Rejects waiting messages. `#waiting` also contains messages given to the algorithm, which may have been sent. */
  #refuseWaiting(code: CoordinationCode, text: string, isMeant: (message: Message) => boolean): void {
    for (const message of this.#waiting) {
      if (message.phase === "waiting" && isMeant(message)) this.#refuse(message, this.#error(code, "never-sent", text));
    }
  }

  #loseFlights(code: CoordinationCode, text: string): void {
    for (const [number, flight] of this.#flights) {
      this.#land(number, flight);
      for (const message of flight.messages) this.#refuse(message, this.#error(code, "uncertain", text));
    }
    this.#look();
  }

  #land(number: number, { bytes, messages }: Flight): void {
    this.#flights.delete(number);
    this.#flightBytes -= bytes;
    this.#inFlight -= messages.length;
  }

  #look(): void {
    if (this.#isIdle) this.#onIdle?.();
    else this.wake();
  }

  #refuse(message: Message, error: CoordinationError): void {
    if (message.phase === "settled") return;
    if (message.phase === "waiting") {
      this.waiting -= 1;
      this.#waitingBytes -= message.bytes;
      this.#abandoned += 1;
    }
    message.phase = "settled";
    message.forget();
    message.reject(error);
    if (this.#abandoned > this.waiting + MANY) this.#sweep();
  }

  /** Removes abandoned messages, so that they do not accumulate as long as nothing can be sent. */
  #sweep(): void {
    this.#waiting = this.#waiting.slice(this.#next).filter(({ phase }) => phase === "waiting");
    this.#next = 0;
    this.#abandoned = 0;
  }

  #aborted(signal: AbortSignal, phase: Phase): CoordinationError {
    const text = `${this.#options.what}: a send was aborted, and ${outlook(phase)}`;
    return new CoordinationError("send-aborted", phase, text, { cause: signal.reason });
  }

  #error(code: CoordinationCode, phase: Phase, text: string): CoordinationError {
    return new CoordinationError(code, phase, text);
  }
}

/** The options of most sends. */
export const PATIENT: SendOptions = {};

const sendRules: Rules<SendOptions> = { timeoutMs: duration, signal };

const nothing = (): void => {};

const outlook = (phase: Phase): string =>
  phase === "never-sent" ? "no member will deliver the message" : "the message may still be delivered";
