/**
 * Links lose what does not fit their queue, and what the fault gate keeps off. Messages that an algorithm counts on are sent
 * again until their link takes them; from there on links see to it that they arrive. Those to one member stay in order.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Receipt } from "../../runtime/transport/tcp.ts";

const AGAIN_MS = 20;
/** For each member: of one that cannot be reached for longer, others will have to do without it. */
const MAX_WAITING = 10_000;

export class Resending<M> {
  readonly #waiting = new Map<NodeId, M[]>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly send: (to: NodeId, message: M) => Receipt,
    private readonly onOverflow: (to: NodeId) => void,
  ) {}

  insist(to: NodeId, message: M): Receipt {
    const before = this.#waiting.get(to);
    if (before === undefined) {
      const receipt = this.send(to, message);
      if (receipt.lost !== null) this.#keep(to, [message]);
      return receipt;
    }
    before.push(message);
    if (before.length > MAX_WAITING) {
      before.shift();
      this.onOverflow(to);
    }
    return LATER;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#waiting.clear();
  }

  #keep(to: NodeId, messages: M[]): void {
    this.#waiting.set(to, messages);
    this.#timer ??= setInterval(() => this.#again(), AGAIN_MS).unref();
  }

  #again(): void {
    for (const [to, messages] of this.#waiting) {
      const refused = messages.findIndex((message) => this.send(to, message).lost !== null);
      messages.splice(0, refused < 0 ? messages.length : refused);
      if (messages.length === 0) this.#waiting.delete(to);
    }
    if (this.#waiting.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** Nobody traces these. */
const LATER: Receipt = { id: () => "", lost: null };
