/**
 * Links lose what does not fit their queue, and what the fault injector keeps off. Messages that an algorithm counts on are sent
 * again until their link takes them; from there on links see to it that they arrive. Those to one member stay in order.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";

const AGAIN_MS = 20;
/** For each member: of one that cannot be reached for longer, others will have to do without it. */
const MAX_WAITING = 10_000;
const MAX_BYTES = 16 * 1024 * 1024;

export interface ResendingOptions<M> {
  readonly platform: Platform;
  send(to: NodeId, message: M): SendResult;
  /** About how much it takes to keep one. */
  bytesOf(message: M): number;
  /** The oldest was dropped. */
  onOverflow(to: NodeId): void;
}

/** What waits for one member. */
interface Waiting<M> {
  readonly messages: { readonly message: M; readonly bytes: number }[];
  bytes: number;
}

export class Resending<M> {
  readonly #waiting = new Map<NodeId, Waiting<M>>();
  #timer: Timer | null = null;

  constructor(private readonly options: ResendingOptions<M>) {}

  insist(to: NodeId, message: M): SendResult {
    const before = this.#waiting.get(to);
    if (before === undefined) {
      const result = this.options.send(to, message);
      if (result.lost !== null) this.#begin(to, message);
      return result;
    }
    this.#keep(before, message);
    while (before.messages.length > MAX_WAITING || before.bytes > MAX_BYTES) {
      drop(before, 1);
      this.options.onOverflow(to);
    }
    return LATER;
  }

  /** A sender that can wait before it sends more to that member should: what is over the bounds is lost. */
  isFull(to: NodeId): boolean {
    const waiting = this.#waiting.get(to);
    return waiting !== undefined && (waiting.messages.length > MAX_WAITING / 2 || waiting.bytes > MAX_BYTES / 2);
  }

  close(): void {
    this.options.platform.timers.cancel(this.#timer);
    this.#waiting.clear();
  }

  #begin(to: NodeId, message: M): void {
    const waiting: Waiting<M> = { messages: [], bytes: 0 };
    this.#keep(waiting, message);
    this.#waiting.set(to, waiting);
    this.#timer ??= this.options.platform.timers.every(AGAIN_MS, () => this.#again()).unref();
  }

  #keep(waiting: Waiting<M>, message: M): void {
    const bytes = this.options.bytesOf(message);
    waiting.messages.push({ message, bytes });
    waiting.bytes += bytes;
  }

  #again(): void {
    for (const [to, waiting] of this.#waiting) {
      const { messages } = waiting;
      const refused = messages.findIndex(({ message }) => this.options.send(to, message).lost !== null);
      drop(waiting, refused < 0 ? messages.length : refused);
      if (messages.length === 0) this.#waiting.delete(to);
    }
    if (this.#waiting.size > 0 || this.#timer === null) return;
    this.options.platform.timers.cancel(this.#timer);
    this.#timer = null;
  }
}

/** The oldest so many. */
function drop(waiting: Waiting<unknown>, count: number): void {
  for (const { bytes } of waiting.messages.splice(0, count)) waiting.bytes -= bytes;
}

/** It waits here: the trace tells of it when it leaves. */
const LATER: SendResult = { id: () => "", lost: null };
