/**
 * Resends messages that links have refused because their queue was full or the fault injector blocked them. The
 * messages are offered again, in order, until the link accepts them. Later messages wait behind them.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";
import type { SendResult } from "../../runtime/transport/tcp.ts";
import { UNTOLD } from "./unrecorded.ts";

export interface ResendingOptions<M> {
  readonly platform: Pick<Platform, "timers">;
  send(to: NodeId, message: M): SendResult;
  /** Called when the oldest message has been dropped. */
  onOverflow(to: NodeId): void;
}

const AGAIN_MS = 20;
/** The maximum number of messages per member. For an unreachable member, older messages are dropped. */
const MAX_WAITING = 10_000;
const MAX_BYTES = 16 * 1024 * 1024;

interface Queue<M> {
  messages: { readonly message: M; readonly bytes: number }[];
  bytes: number;
}

export class Resending<M> {
  readonly #options: ResendingOptions<M>;
  readonly #waiting = new Map<NodeId, Queue<M>>();
  #again: Timer | null = null;
  #isClosed = false;

  constructor(options: ResendingOptions<M>) {
    this.#options = options;
  }

  insist(to: NodeId, message: M): SendResult {
    const queue = this.#waiting.get(to);
    const result = queue === undefined ? this.#options.send(to, message) : UNTOLD;
    if (queue !== undefined || (result.lost !== null && !this.#isClosed))
      this.#enqueue(to, queue ?? { messages: [], bytes: 0 }, message);
    return result;
  }

  /** Whether senders should wait before sending more to that member. Messages beyond the limit are lost. */
  isFull(to: NodeId): boolean {
    const queue = this.#waiting.get(to);
    return queue !== undefined && (queue.messages.length > MAX_WAITING / 2 || queue.bytes > MAX_BYTES / 2);
  }

  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    this.#options.platform.timers.cancel(this.#again);
    this.#again = null;
  }

  #enqueue(to: NodeId, queue: Queue<M>, message: M): void {
    const bytes = JSON.stringify(message).length;
    queue.messages.push({ message, bytes });
    queue.bytes += bytes;
    this.#waiting.set(to, queue);
    while (queue.messages.length > MAX_WAITING || queue.bytes > MAX_BYTES) {
      queue.bytes -= queue.messages.shift()?.bytes ?? 0;
      this.#options.onOverflow(to);
    }
    this.#again ??= this.#options.platform.timers.after(AGAIN_MS, () => this.#offer());
  }

  #offer(): void {
    this.#again = null;
    for (const [to, queue] of this.#waiting) {
      const refused = queue.messages.findIndex(({ message }) => this.#options.send(to, message).lost !== null);
      const taken = queue.messages.splice(0, refused < 0 ? queue.messages.length : refused);
      for (const { bytes } of taken) queue.bytes -= bytes;
      if (refused < 0) this.#waiting.delete(to);
    }
    if (this.#waiting.size > 0) this.#again = this.#options.platform.timers.after(AGAIN_MS, () => this.#offer());
  }
}
