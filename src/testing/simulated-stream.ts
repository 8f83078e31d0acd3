/** One end of a simulated TCP stream: bytes in order, with back-pressure, in chunks that may differ from the writes. */
import type { Random } from "../core/random.ts";
import type { HostPort } from "../runtime/host-port.ts";
import type { Stream } from "../runtime/platform/platform.ts";
import { refusedBySystem } from "./simulated-disk.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The link from one end to the other. */
export interface Way {
  readonly time: VirtualTime;
  readonly chance: Random;
  readonly isOpen: boolean;
  /** Whether the sending machine has power, and so sends lost packets again. */
  readonly hasSender: boolean;
  readonly isLossy: boolean;
  transit(bytes: number): Transit;
  /** The timeout before a packet is sent again that was lost this many times before. */
  lostForMs(losses: number): number;
  /** The same timeout while the link is cut. */
  resendMs(attempts: number): number;
}

export interface Transit {
  readonly ms: number;
  readonly losses: number;
}

/** Above the first limit of bytes in flight, a write signals back-pressure; below the second, it may continue. */
const HIGH_WATER_BYTES = 64 * 1024;
const LOW_WATER_BYTES = 16 * 1024;
/** The most delivered packets that are retained. */
const MAX_GONE = 500;
/** One in this many packets is split in two. */
const SPLIT_ONE_IN = 50;

type Packet = {
  due: number;
  /** How many more times it will be lost and how many times it was, while the link is lossy. */
  toLose: number;
  lost: number;
  readonly content: Buffer | "fin" | "reset" | "room";
};

// biome-ignore lint/suspicious/noExplicitAny: each event has its own listener.
type Listener = (value?: any) => void;

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
  /** In flight to the other end, in order. */
  #packets: Packet[] = [];
  #head = 0;
  #isMoving = false;
  /** Bytes written that the other end has not read yet. */
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

  /** Bytes written that the other end has not read yet. */
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

  /** Bytes in the kernel still arrive, or the other end is reset. */
  destroy(): void {
    if (this.destroyed) return;
    if (this.#chance.below(2) === 0) this.#sendEnd("fin");
    else this.#sendEnd("reset");
    this.#close();
  }

  /** Its process is dead. */
  abandon(hasPower: boolean): void {
    if (!hasPower) this.#forget();
    else if (!this.destroyed) this.#sendEnd(this.#chance.below(2) === 0 ? "fin" : "reset");
    this.destroyed = true;
    this.#writable = false;
  }

  /** The stream breaks, or could not be opened. */
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
    return this.on(event, listener); // It is emitted only once.
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
    if (way === null) return; // Not connected yet.
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

  /** Waits for the first packet to arrive. A lost one is sent again, and all others wait for it. */
  #move(way: Way, attempts: number): void {
    const packet = this.#packets[this.#head];
    if (packet === undefined) return this.#forget();
    if (this.#isMoving) return;
    this.#isMoving = true;
    while (packet.toLose > 0 && way.isLossy && packet.due < way.time.now) lose(way, packet); // Lost while it waited.
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
    if (!way.hasSender) return this.#forget(); // The sender is gone, so no retransmission follows.
    packet.due = way.time.now + way.resendMs(attempts);
    this.#move(way, attempts + 1);
  }

  #forget(): void {
    this.#packets = [];
    this.#head = 0;
  }

  /** At this end's machine. */
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

  /** The other end has closed: this one closes too, once its writes have been sent. */
  #ended(): void {
    this.#sendEnd("fin");
    this.#close();
  }
}

/** It is sent again; the timeout doubles each time. */
function lose(way: Way, packet: Packet): void {
  packet.due += way.lostForMs(packet.lost);
  packet.lost += 1;
  packet.toLose -= 1;
}
