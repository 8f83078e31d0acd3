/**
 * The messages that this process sends on a channel, and their outcomes. Messages gather while others are in flight, so
 * that one multicast carries many: under load, each message costs fewer multicasts.
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
  /** Whether a message is settled when it has been delivered here, or when every member of the view has it. */
  readonly settled: "delivered" | "stable";
  /** How many multicasts of the carrier one of ours takes, if the carrier reports which are stable; otherwise null. */
  readonly carried: number | null;
  /** Whether the algorithm accepts a message now. */
  mayHand(): boolean;
  hand(text: string): void;
}

/** The limit of messages that wait to be sent. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Multicasts in flight before others gather into full ones; the most full ones in flight, and their bytes. */
const FEW = 8;
const MANY = 64;
const MOST_BYTES = 2 * 1024 * 1024;
/** The most unstable multicasts of the carrier: less than its window, so that none waits there. */
const MOST_UNSTABLE = 192;

/** The use of the channel that sent a message. */
type Owner = object;

interface Message {
  /** Its JSON, until it is sent. */
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
  /** Its id and view, once it has been delivered here. */
  sent: Sent | null;
  /** Its number among this member's multicasts in the view, from 1. */
  place: number;
}

export class Sending {
  readonly #options: SendingOptions;
  #waiting: Message[] = [];
  #next = 0;
  /** How many messages in `#waiting` are no longer wanted. */
  #abandoned = 0;
  #waitingBytes = 0;
  #number = 0;
  /** By number, in sending order. */
  readonly #flights = new Map<number, Flight>();
  #flightBytes = 0;
  #inFlight = 0;
  /**
   * Of this member in this view: multicasts delivered here, multicasts given to the algorithm, and stable multicasts of the
   * carrier.
   */
  #places = 0;
  #handed = 0;
  #stable = 0;
  #isScheduled = false;
  /** Why no more messages are accepted. */
  #refusal: CoordinationError | null = null;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  constructor(options: SendingOptions) {
    this.#options = options;
  }

  /** Messages that wait to be multicast. */
  waiting = 0;

  /** Messages in flight. */
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

  /** Call it when the algorithm may accept messages again. */
  wake(): void {
    if (this.#isScheduled || this.waiting === 0) return;
    this.#isScheduled = true;
    const hand = (): void => this.#handAll();
    // A single message need not wait for others.
    if (this.#flights.size === 0) queueMicrotask(hand);
    else this.#options.platform.timers.soon(hand);
  }

  /** One of this process's multicasts has been delivered here. */
  delivered(number: number, sent: Sent): void {
    this.#places += 1;
    const flight = this.#flights.get(number);
    if (flight === undefined) return;
    flight.sent = sent;
    flight.place = this.#places;
    if (this.#options.settled === "delivered") this.#settle(number, flight);
  }

  /** Every member of the view has the carrier's first `count` multicasts of this member. */
  stable(count: number): void {
    this.#stable = count;
    this.wake();
    if (this.#options.settled !== "stable") return;
    for (const [number, flight] of this.#flights) {
      if (flight.sent === null || flight.place > count) return;
      this.#settle(number, flight);
    }
  }

  /** A new view: what was delivered in earlier views was delivered at all members that are also in this one. */
  installed(): void {
    this.#places = 0;
    this.#stable = 0;
    for (const [number, flight] of this.#flights) if (flight.sent !== null) this.#settle(number, flight);
    this.#handed = this.#flights.size; // The previous view did not deliver them.
  }

  /** Multicasts in flight may be delivered by others, but not here. */
  ejected(): void {
    if (this.#refusal !== null) return this.#loseFlights(this.#refusal.code, this.#refusal.message); // It is leaving.
    const text = `this member was expelled from the group of ${this.#options.what}: other members may have delivered the message`;
    this.#loseFlights("send-uncertain", text);
  }

  /** That use of the channel is closed. */
  withdraw(owner: Owner): void {
    const text = `${this.#options.what} was closed before the message was sent`;
    this.#refuseWaiting("channel-closed", text, (message) => message.owner === owner);
  }

  /** Accepts no more messages; accepted ones are still sent. */
  stop(reason: CoordinationError): void {
    this.#refusal ??= reason;
  }

  /** Resolves once no message waits or is in flight. */
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
    const text = `${this.waiting} messages of ${this.#waitingBytes} bytes wait to be sent on ${what}, which is the maximum: await some of your sends`;
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
      const cost = message.bytes + 1; // Includes the comma.
      if (bytes > 0 && bytes + cost > this.#options.bounds.batchBytes) break;
      bytes += cost;
      message.phase = "sent";
      messages.push(message);
      texts.push(message.text);
      message.text = ""; // Frees the text: otherwise garbage collection would have to move the texts of all messages in flight.
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

  /** `#waiting` also contains messages that were given to the algorithm: these may have been sent. */
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

  /** If nothing can be sent for long, abandoned messages must not pile up. */
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
  phase === "never-sent" ? "no member delivers the message" : "the message may still be delivered";
