/**
 * Back-pressure of a channel: a member whose readers cannot keep up announces it repeatedly, and senders wait for it. An
 * announcement is valid for a short time, so no sender waits for a member that has crashed or is unreachable. Soft state,
 * as in Clark, "The Design Philosophy of the DARPA Internet Protocols", SIGCOMM 1988, §10.
 */
import type { NodeId } from "../../core/protocol.ts";
import type { Platform, Timer } from "../../runtime/platform/platform.ts";

const SEND_EVERY_MS = 250;
const VALID_MS = 1_250;

export interface PressureOptions {
  readonly platform: Pick<Platform, "clock" | "timers">;
  /** Announces it to all other members. */
  send(isFull: boolean): void;
  /** Senders may have one member fewer to wait for. */
  onRelief(): void;
}

export class ReaderPressure {
  readonly #options: PressureOptions;
  /** When each slow member last announced it. */
  readonly #slow = new Map<NodeId, number>();
  #again: Timer | null = null;
  #expiry: Timer | null = null;
  isFull = false;

  constructor(options: PressureOptions) {
    this.#options = options;
  }

  /** Sets whether readers here fail to keep up. */
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

  /** The slow ones among these members. */
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
