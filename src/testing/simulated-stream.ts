/** One end of a simulated TCP stream: bytes in order, with back-pressure, in chunks that may differ from the writes. */
import type { Random } from "../core/random.ts";
import type { HostPort } from "../runtime/host-port.ts";
import type { Stream } from "../runtime/platform/platform.ts";
import { refusedBySystem } from "./simulated-disk.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The link from one end of a stream to the other. */
export interface Way {
  readonly time: VirtualTime;
  readonly chance: Random;
  readonly isOpen: boolean;
  /** Whether the sending machine has power, and therefore resends lost packets. */
  readonly hasSender: boolean;
  readonly isLossy: boolean;
  transit(bytes: number): Transit;
  /** Returns the timeout before a packet that has been lost this many times is resent. */
  lostForMs(losses: number): number;
  /** Returns the same timeout for the case that the link is cut. */
  resendMs(attempts: number): number;
}

/** The travel time of a packet, and how many times it is lost before it arrives. */
export interface Transit {
  readonly ms: number;
  readonly losses: number;
}

/**
 * If the number of bytes in flight exceeds the first limit, a write signals back-pressure. Once it falls below the
 * second, writing may continue.
 */
const HIGH_WATER_BYTES = 64 * 1024;
const LOW_WATER_BYTES = 16 * 1024;
/** The maximum number of delivered packets that are retained. */
const MAX_GONE = 500;
/** One in this many packets is split in two. */
const SPLIT_ONE_IN = 50;

type Packet = {
  due: number;
  /**
   * How many more times the packet will be lost while the link is lossy, and how many times it has been lost so far.
   */
  toLose: number;
  lost: number;
  readonly content: Buffer | "fin" | "reset" | "room";
};

// biome-ignore lint/suspicious/noExplicitAny: each event has its own listener.
type Listener = (value?: any) => void;

/** One end of a connection. */
export class SimulatedStream implements Stream {
  readonly #process: SimulatedProcess;
  readonly #chance: Random;
  destroyed = false;
  writableNeedDrain = false;
  readonly remoteAddress: string;
  readonly remotePort: number;
  #writable = true;
  readonly #listeners = new Map<string, Listener[]>();
  #other: SimulatedStream | null = null;
  #way: Way | null = null;
  /** The packets in flight to the other end, in order. */
  #packets: Packet[] = [];
  #head = 0;
  #isMoving = false;
  /** How many bytes have been written that the other end has not read yet. */
  #unread = 0;
  #hasSentEnd = false;

  constructor(process: SimulatedProcess, chance: Random, { host, port }: HostPort) {
    this.#process = process;
    this.#chance = chance;
    this.remoteAddress = host;
    this.remotePort = port;
  }

  get writable(): boolean {
    return this.#writable;
  }

  /** How many bytes have been written that the other end has not read yet. */
  get unreadBytes(): number {
    return this.#unread;
  }

  connect(other: SimulatedStream, way: Way): void {
    this.#other = other;
    this.#way = way;
  }

  write(bytes: Buffer): boolean {
    if (!this.#writable) return false;
    this.#unread += bytes.length;
    this.#send(bytes);
    if (this.#unread >= HIGH_WATER_BYTES) this.writableNeedDrain = true;
    return !this.writableNeedDrain;
  }

  end(bytes: Buffer): void {
    if (!this.#writable) return;
    this.#send(bytes);
    this.#writable = false;
    this.#sendEnd("fin");
  }

  /** Closes the stream immediately. Bytes that are already in the kernel still arrive, or the other end is reset. */
  destroy(): void {
    if (this.destroyed) return;
    if (this.#chance.below(2) === 0) this.#sendEnd("fin");
    else this.#sendEnd("reset");
    this.#close();
  }

  /** Closes this end after its process has died. */
  abandon(hasPower: boolean): void {
    if (!hasPower) this.#forget();
    else if (!this.destroyed) this.#sendEnd(this.#chance.below(2) === 0 ? "fin" : "reset");
    this.destroyed = true;
    this.#writable = false;
  }

  /** Breaks the stream, or reports that it could not be opened. */
  fail(code: string): void {
    if (this.destroyed) return;
    this.#hasSentEnd = true;
    this.#emit("error", refusedBySystem(code === "ECONNRESET" ? "read" : "connect", code));
    this.#close();
  }

  on(event: string, listener: Listener): this {
    const listeners = this.#listeners.get(event);
    if (listeners === undefined) this.#listeners.set(event, [listener]);
    else listeners.push(listener);
    return this;
  }

  once(event: "close", listener: () => void): this {
    return this.on(event, listener); // This event is emitted only once.
  }

  #emit(event: string, value?: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(value);
  }

  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#writable = false;
    this.#process.after(0, () => this.#emit("close"));
  }

  #sendEnd(how: "fin" | "reset"): void {
    if (this.#hasSentEnd) return;
    this.#hasSentEnd = true;
    if (how === "reset") this.#forget(); // A reset overtakes data.
    this.#send(how);
  }

  #send(content: Packet["content"]): void {
    const way = this.#way;
    if (way === null) return; // The stream is not connected yet.
    if (typeof content === "object" && content.length > 1 && this.#chance.below(SPLIT_ONE_IN) === 0) {
      const at = 1 + this.#chance.below(content.length - 1);
      this.#queue(way, content.subarray(0, at));
      this.#queue(way, content.subarray(at));
    } else this.#queue(way, content);
  }

  #queue(way: Way, content: Packet["content"]): void {
    const bytes = typeof content === "object" ? content.length : 0;
    const { ms, losses } = way.transit(bytes);
    this.#packets.push({ due: way.time.now + ms, toLose: losses, lost: 0, content });
    this.#move(way, 0);
  }

  /** Waits for the first packet to arrive. If it is lost, it is resent, and all the others wait for it. */
  #move(way: Way, attempts: number): void {
    const packet = this.#packets[this.#head];
    if (packet === undefined) return this.#forget();
    if (this.#isMoving) return;
    this.#isMoving = true;
    // Any resends that were due while the packet was waiting behind others have already happened.
    while (packet.toLose > 0 && way.isLossy && packet.due < way.time.now) lose(way, packet);
    way.time.at(Math.max(packet.due, way.time.now), () => {
      this.#isMoving = false;
      if (this.#packets[this.#head] !== packet) return this.#move(way, 0);
      if (!way.isOpen) return this.#again(way, packet, attempts);
      if (packet.toLose > 0 && way.isLossy) {
        lose(way, packet);
        return this.#move(way, attempts);
      }
      this.#head += 1;
      if (this.#head > MAX_GONE) {
        this.#packets.splice(0, this.#head);
        this.#head = 0;
      }
      this.#move(way, 0);
      (this.#other as SimulatedStream).#arrive(packet.content);
    });
  }

  #again(way: Way, packet: Packet, attempts: number): void {
    if (!way.hasSender) return this.#forget(); // The sender has lost power, so there will be no retransmission.
    packet.due = way.time.now + way.resendMs(attempts);
    this.#move(way, attempts + 1);
  }

  #forget(): void {
    this.#packets = [];
    this.#head = 0;
  }

  /** Handles a packet that arrives at this end's machine. */
  #arrive(content: Packet["content"]): void {
    if (this.destroyed) {
      if (content !== "reset" && content !== "fin") this.#answerReset();
      return;
    }
    this.#process.arrive(() => {
      if (this.destroyed) return;
      if (content === "reset") this.fail("ECONNRESET");
      else if (content === "fin") this.#ended();
      else if (content === "room") this.#goOn();
      else this.#read(content);
    });
  }

  #answerReset(): void {
    this.#hasSentEnd = false;
    this.#sendEnd("reset");
  }

  #read(bytes: Buffer): void {
    const other = this.#other as SimulatedStream;
    other.#unread -= bytes.length;
    if (other.writableNeedDrain && other.#unread <= LOW_WATER_BYTES) this.#send("room");
    this.#emit("data", bytes);
  }

  #goOn(): void {
    if (!this.writableNeedDrain) return;
    this.writableNeedDrain = false;
    this.#emit("drain");
  }

  /** Closes this end after the other end has closed, once this end's writes have been sent. */
  #ended(): void {
    this.#sendEnd("fin");
    this.#close();
  }
}

/** Schedules a lost packet to be resent. The timeout doubles each time. */
function lose(way: Way, packet: Packet): void {
  packet.due += way.lostForMs(packet.lost);
  packet.lost += 1;
  packet.toLose -= 1;
}
