/**
 * Backpressure on a channel. A member whose readers cannot keep up announces this repeatedly, and senders wait for it.
 * Each announcement is valid only for a short time, so no sender waits for a member that has crashed or is unreachable.
 * This is soft state, as in Clark, "The Design Philosophy of the DARPA Internet Protocols", SIGCOMM 1988, §10.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";

const SEND_EVERY_MS = 250;
const VALID_MS = 1_250;

export interface PressureOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  /** Announces to all other members whether this member's readers are slow. */
  send(isFull: boolean): void;
  /** Called when senders may have fewer members to wait for. */
  onRelief(): void;
}

/** Announces this member's slow readers, and keeps track of other members that have slow readers. */
export class ReaderPressure {
  readonly #options: PressureOptions;
  /** For each slow member, the time of its last announcement. */
  readonly #slow = new Map<NodeId, number>();
  #again: Timer | null = null;
  #expiry: Timer | null = null;
  isFull = false;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  /** Sets whether this member's readers are too slow. */
  set(isFull: boolean): void {
    if (isFull === this.isFull) return;
    this.isFull = isFull;
    this.#cancel();
    this.#send();
    if (!isFull) this.#options.onRelief();
  }

  receive(from: NodeId, isFull: boolean): void {
    const { clock } = this.#options.platform;
    if (isFull) {
      this.#slow.set(from, clock.now());
      this.#expire();
    } else if (this.#slow.delete(from)) this.#options.onRelief();
  }

  /** Returns the given members that have slow readers. */
  slowAmong(members: readonly NodeId[]): readonly NodeId[] {
    return members.filter((member) => this.#slow.has(member));
  }

  stop(): void {
    this.#cancel();
    this.#options.platform.timers.cancel(this.#expiry);
    this.#expiry = null;
    this.#slow.clear();
    this.isFull = false;
  }

  #cancel(): void {
    this.#options.platform.timers.cancel(this.#again);
    this.#again = null;
  }

  #send(): void {
    this.#options.send(this.isFull);
    if (this.isFull) this.#again = this.#options.platform.timers.after(SEND_EVERY_MS, () => this.#send());
  }

  #expire(): void {
    const { clock, timers } = this.#options.platform;
    timers.cancel(this.#expiry);
    this.#expiry = null;
    const [oldest] = [...this.#slow.values()].sort((a, b) => a - b);
    if (oldest === undefined) return;
    this.#expiry = timers.after(Math.max(1, oldest + VALID_MS - clock.now()), () => {
      const before = this.#slow.size;
      for (const [node, at] of this.#slow) if (at + VALID_MS <= clock.now()) this.#slow.delete(node);
      if (this.#slow.size < before) this.#options.onRelief();
      this.#expire();
    });
  }
}
